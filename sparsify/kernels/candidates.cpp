#include "sparsify/kernels/candidates.h"

#include <cmath>

namespace tw {

constinit DispatchTable<std::unique_ptr<Candidates>()> candidates_dispatch{"candidates"};

std::unique_ptr<Candidates> Candidates::create(Context& ctx) {
  return candidates_dispatch(ctx.device());
}

size_t sample_rank(size_t k, size_t d) {
  // about `expected` of n samples are among the k largest of u
  const double n = static_cast<double>(std::min(d, kSamples));
  const double expected = static_cast<double>(k) / static_cast<double>(d) * n;
  return static_cast<size_t>(std::ceil(expected + 5 * std::sqrt(expected) + 2));
}

}  // namespace tw
