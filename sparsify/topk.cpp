#include "sparsify/topk.h"

#include <algorithm>

#include "sparsify/sync_sgd.h"

namespace tw {

constinit Bodies<std::unique_ptr<Selector>(const Settings&)> topk_bodies{"topk"};

SelectInfo TopK::select(Context& ctx, const SelectStep& in, SparseVector& out) {
  const std::span<float> e = in.e;
  const size_t k = std::min(in.k, e.size());
  const uint32_t threshold = sampled_threshold(in.g, e, k, sample_);
  candidates_.collect(ctx, in.g, e, threshold);
  // the sample misled: count all of u, which e holds by now
  if (candidates_.count() < k && threshold > 1)
    candidates_.collect(ctx, {}, e, counted_threshold(ctx, e, k, whole_));
  return top_.take(ctx, candidates_, k, e, in.base, out);
}

namespace {

std::unique_ptr<Selector> make_topk(const Settings&) { return std::make_unique<TopK>(); }

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
