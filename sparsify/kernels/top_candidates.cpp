#include "sparsify/kernels/top_candidates.h"

#include "sparsify/kernels/candidates_cpu.h"

namespace tw {

SelectInfo TopCandidates::take(Context& ctx, std::span<const SparseVector> runs, size_t k,
                               uint32_t resolution, std::span<float> e, uint32_t base,
                               SparseVector& out) {
  histogram_.clear();
  for (const SparseVector& run : runs)
    for (size_t i = 0; i < run.count; ++i) histogram_.add(magnitude_bits(run.values[i]));
  if (histogram_.cut(1).edge >= kInfinityBits) return name_nonfinite(ctx, e);

  const uint64_t cut = cut_key(runs, k, resolution);
  tw::take(runs, cut, k, resolution, e, base, out);
  return {.threshold = std::bit_cast<float>(static_cast<uint32_t>(cut >> 32))};
}

uint64_t TopCandidates::cut_key(std::span<const SparseVector> runs, size_t k, uint32_t resolution) {
  size_t count = 0;
  for (const SparseVector& run : runs) count += run.count;
  if (count <= k) return 0;
  const auto [edge, above] = histogram_.cut(k);

  // only the bin that holds the k-th entry needs a closer look
  keys_.clear();
  keys_.reserve(k);
  for (const SparseVector& run : runs)
    for (size_t i = 0; i < run.count; ++i)
      if (magnitude_bits(run.values[i]) >> LogHistogram::kShift == edge >> LogHistogram::kShift)
        keys_.push_back(rank_key(run.values[i], run.indices[i], resolution));
  return kth_largest(keys_, k - above);
}

}  // namespace tw
