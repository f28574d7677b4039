// RandK-SGD with error feedback (Stich, Cordonnier and Jaggi 2018, arXiv 1809.07599). E ||u -
// Rand_k(u)||^2 = (1 - k/d) ||u||^2 for any u.

#include "sparsify/selectors/randk.h"

#include <algorithm>

#include "sparsify/sparsifier.h"

namespace tw {

namespace {

class HostSubsetMover : public SubsetMover {
 public:
  void move(Context&, const FloydSample& sample, bool zeros, std::span<float> e, uint32_t base,
            SparseVector& out) override {
    const size_t first = out.count;
    subset_.draw(sample);
    out.reserve(first + sample.k);
    subset_.for_each(
        [&](size_t at) { out.indices[out.count++] = base + static_cast<uint32_t>(at); });
    move_values(e, base, out, first);
    if (!zeros) out.drop_zeros(first);
  }

 private:
  RandomSubset subset_;
};

}  // namespace

SelectInfo RandK::select(Context& ctx, const SelectStep& in, SparseVector& out) {
  nonfinite_->collect(ctx, in.g, in.e, kInfinityBits);
  if (nonfinite_->count() > 0) return name_nonfinite(ctx, in.e);
  const size_t n = in.e.size();
  subset_->move(ctx, {philox_, in.step << 32 | in.slice, n, std::min(in.k, n)}, shared_, in.e,
                in.base, out);
  return {};
}

namespace {

bool seed_is_shared(const Settings& settings) { return settings.text("randk.seed") == "shared"; }

std::unique_ptr<Selector> make_randk(Context& ctx, const Settings& settings,
                                     const SelectorRank& rank) {
  const bool shared = seed_is_shared(settings);
  const uint32_t stream = shared ? 0 : static_cast<uint32_t>(rank.rank) + 1;
  return std::make_unique<RandK>(ctx, Philox(rank.seed, Purpose::select, stream), shared);
}

const std::vector<Setting> kRandKSettings = {
    {"seed",
     "worker",
     "worker: different indices on each rank; shared: the same on all ranks, so that only values "
     "are sent",
     {"worker", "shared"}}};

const bool randk_registered = subset_mover_dispatch.add<HostSubsetMover>(Device::cpu);
const bool randk_selector = selectors().add(
    {kRandk,
     "k random entries",
     {.make = make_randk, .volume = Volume::exactly_k, .shared_indices = seed_is_shared},
     kRandKSettings});
const bool randk_sparsifier =
    sparsifiers().add({kRandk,
                       "random k, error feedback, sparse allgather",
                       // does not reach the accuracy of the others
                       {.selector = kRandk, .exchange = "allgather", .advice = Advice::never}});

}  // namespace

const char* const kRandk = "randk";

}  // namespace tw
