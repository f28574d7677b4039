#include "sparsify/topk.h"

#include <algorithm>
#include <functional>

#include "sparsify/sync_sgd.h"

namespace tw {

constinit Bodies<std::unique_ptr<Selector>(const Settings&)> topk_bodies{"topk"};

SelectInfo TopK::select(Context& ctx, const SelectStep& in, SparseVector& out) {
  const std::span<float> e = in.e;
  const size_t k = std::min(in.k, e.size());
  uint32_t threshold = sampled_threshold(in.g, e, k, histogram_);
  candidates_.collect(ctx, in.g, e, threshold);
  if (candidates_.count() < k && threshold > 1) {
    // the sample misled: count all of u, which e holds by now
    threshold = counted_threshold(ctx, e, k, whole_);
    candidates_.collect(ctx, {}, e, threshold);
  }

  histogram_.clear();
  for (const SparseVector& run : candidates_.runs())
    for (size_t i = 0; i < run.count; ++i) histogram_.add(magnitude_bits(run.values[i]));
  if (histogram_.cut(1).edge >= kInfinityBits) return first_nonfinite(candidates_);

  const uint64_t cut = cut_key(k);
  take(candidates_, cut, resolution_, e, in.base, out);
  return {.threshold = std::bit_cast<float>(static_cast<uint32_t>(cut >> 32))};
}

uint64_t TopK::cut_key(size_t k) {
  if (candidates_.count() <= k) return 0;
  const auto [edge, above] = histogram_.cut(k);

  // only the bin that holds the k-th entry needs a closer look
  keys_.clear();
  keys_.reserve(k);
  for (const SparseVector& run : candidates_.runs())
    for (size_t i = 0; i < run.count; ++i)
      if (magnitude_bits(run.values[i]) >> LogHistogram::kShift == edge >> LogHistogram::kShift)
        keys_.push_back(rank_key(run.values[i], run.indices[i], resolution_));
  const auto kth = keys_.begin() + static_cast<ptrdiff_t>(k - above - 1);
  std::nth_element(keys_.begin(), kth, keys_.end(), std::greater<>());
  return *kth;
}

namespace {

std::unique_ptr<Selector> make_topk(const Settings&) { return std::make_unique<TopK>(~0u); }

const bool body = topk_bodies.add(Device::cpu, make_topk);
const bool selector = selectors().add({"topk", "the k largest magnitudes, exactly",
                                       [](Context& ctx, const Settings& s, const SelectorRank&) {
                                         return topk_bodies(ctx.device(), s);
                                       }});
const bool algorithm = algorithms().add({"topk",
                                         "exact top-k, error feedback, sparse allgather",
                                         {.selector = "topk", .exchange = "allgather"}});

}  // namespace

}  // namespace tw
