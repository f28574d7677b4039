// Replay: one step of a sparsifier on the recorded gradients of all ranks, which are threads.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "apps/common/recording.h"
#include "apps/common/resolve.h"
#include "engine/core/settings.h"
#include "sparsify/sparsifier.h"

namespace tw {

/// What a step of a sparsifier did with the vectors u of P ranks of d elements. NAN where the
/// sparsifier has no such number.
struct Compression {
  double density = 1;  ///< that it was given; 1 without a selector
  size_t k = 0;        ///< entries that a rank was asked for; without a selector, those it summed
  double error = NAN;  ///< ||mean(u) - the mean that was formed|| / ||mean(u)||
  // of sparsifiers with a residual of each rank: ||u - C(u)||^2 / ||u||^2, its mean over the ranks;
  // the entries that any rank sent over the sum of those of each; the bounds, with a selector
  double contraction = NAN, overlap = NAN, of_random = NAN, of_bell = NAN;
  double sent_over_k = NAN;                         ///< mean over the ranks
  uint64_t bytes = 0;                               ///< sent by all ranks
  double select_seconds = 0, exchange_seconds = 0;  ///< of the slowest rank, medians
};

struct ReplayOptions {
  double density = kDensity;
  int64_t iterations = 1;  ///< steps with a fresh state; their median counts
  int threads = 1;         ///< of a rank
  uint64_t seed = 1;
};

/// One step, with the u of each recording as the gradient of a rank and no residual. All have the
/// same tensors. UserError as resolve_sparsifier().
Compression replay(const std::vector<Recording>& ranks, const std::string& sparsifier,
                   const ReplayOptions& options, const Settings& settings);

}  // namespace tw
