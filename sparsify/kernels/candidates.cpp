#include "sparsify/kernels/candidates.h"

#include <cmath>

namespace tw {

std::unique_ptr<Candidates> Candidates::create(Context& ctx) {
  return candidates_dispatch(ctx.device());
}

Moments Candidates::collect_and_sum(Context& ctx, std::span<const float> g, std::span<float> e,
                                    uint32_t min_bits, std::span<const uint32_t> lower,
                                    std::vector<Moments>& blocks) {
  const Moments moments = add_and_moments(ctx, g, e, blocks);
  collect(ctx, {}, e, min_bits, lower);
  return moments;
}

size_t sample_rank(size_t k, size_t d) {
  // about `expected` of n samples are among the k largest of u
  const double n = static_cast<double>(std::min(d, kSamples));
  const double expected = static_cast<double>(k) / static_cast<double>(d) * n;
  return static_cast<size_t>(std::ceil(expected + 5 * std::sqrt(expected) + 2));
}

}  // namespace tw
