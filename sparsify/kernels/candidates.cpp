#include "sparsify/kernels/candidates.h"

#include <cmath>

namespace tw {

std::unique_ptr<Candidates> Candidates::create(Context& ctx) {
  return candidates_dispatch(ctx.device());
}

Tail Candidates::tail(Context& ctx, std::span<const float> u, uint32_t bits) {
  return tail_of(ctx, u, bits, tails_);
}

size_t sample_rank(size_t k, size_t d) {
  // about `expected` of n samples are among the k largest of u
  const double n = static_cast<double>(std::min(d, kSamples));
  const double expected = static_cast<double>(k) / static_cast<double>(d) * n;
  return static_cast<size_t>(std::ceil(expected + 5 * std::sqrt(expected) + 2));
}

}  // namespace tw
