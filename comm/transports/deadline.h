// Deadlines for calls into a library that may hang and cannot be interrupted.
#pragma once

#include <chrono>
#include <functional>

namespace tw {

using Limit = std::chrono::steady_clock::duration;

/// Calls `body` on a thread of its own. Returns true when it has ended, false after `limit`: then
/// the thread continues on its own, so `body` must own what it uses.
bool run_with_deadline(Limit limit, std::function<void()> body);

/// Calls `body` on this thread, for libraries that require it. Another thread calls `late` when
/// body has not ended after `limit`; late may end the process. Without a limit where the system has
/// no thread left.
void run_with_deadline(Limit limit, const std::function<void()>& body,
                       const std::function<void()>& late);

}  // namespace tw
