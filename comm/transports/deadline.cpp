#include "comm/transports/deadline.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "comm/wait_limit.h"

namespace tw {
namespace {

/// A flag that is set once; a thread waits for it with a time limit.
class Done {
 public:
  void set() {
    // notifies under the lock: the waiter may destroy this as soon as it has the lock
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_one();
  }
  bool wait_for(Limit length) {
    std::unique_lock lock(mutex_);
    WaitLimit limit(length);
    return wait_within(changed_, lock, limit, [&] { return done_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

}  // namespace

bool run_with_deadline(Limit limit, std::function<void()> body) {
  const auto done = std::make_shared<Done>();
  std::thread([done, body = std::move(body)] {
    body();
    done->set();
  }).detach();
  return done->wait_for(limit);
}

void run_with_deadline(Limit limit, const std::function<void()>& body,
                       const std::function<void()>& late) {
  Done done;
  std::jthread watch;
  try {
    watch = std::jthread([&] {
      if (!done.wait_for(limit)) late();
    });
  } catch (const std::system_error&) {  // no thread is left: without a limit, then
  }
  body();
  done.set();
}

}  // namespace tw
