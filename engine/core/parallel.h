// parallel_for: runs a CPU loop on the threads of a rank.
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/core/context.h"

namespace tw {

/// True under ThreadSanitizer, which does not understand OpenMP's barriers: each rank then computes
/// on one thread.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kOneThreadARank = true;
#else
inline constexpr bool kOneThreadARank = false;
#endif

/// Calls body(begin, end) for consecutive chunks of `grain` elements covering [0, n).
/// Chunk borders depend on n and grain alone. A reduction that keeps one partial result per chunk
/// and adds them in order therefore gives the same bits on any number of threads.
template <class Body>
void parallel_for(const Context& ctx, size_t n, size_t grain, const Body& body) {
  const size_t chunks = (n + grain - 1) / grain;
  const auto run = [&](size_t c) { body(c * grain, std::min(n, (c + 1) * grain)); };
  if (kOneThreadARank || ctx.threads() == 1 || chunks <= 1) {
    for (size_t c = 0; c < chunks; ++c) run(c);
    return;
  }
#pragma omp parallel for schedule(static) num_threads(ctx.threads())
  for (size_t c = 0; c < chunks; ++c) run(c);
}

}  // namespace tw
