// RandK-SGD with error feedback (Stich, Cordonnier and Jaggi 2018, arXiv 1809.07599).
// E ||u - Rand_k(u)||^2 = (1 - k/d) ||u||^2, whatever u is.

#include "sparsify/randk.h"

#include <algorithm>

#include "sparsify/sync_sgd.h"

namespace tw {

constinit Bodies<std::unique_ptr<Selector>(const Settings&, const SelectorRank&)> randk_bodies{
    "randk"};

namespace {

/// Removes the zeros of `out` from `first` on.
void drop_zeros(SparseVector& out, size_t first) {
  size_t count = first;
  for (size_t i = first; i < out.count; ++i) {
    out.indices[count] = out.indices[i];
    out.values[count] = out.values[i];
    count += out.values[i] != 0;
  }
  out.count = count;
}

}  // namespace

SelectInfo RandK::select(Context& ctx, const SelectStep& in, SparseVector& out) {
  const std::span<float> e = in.e;
  nonfinite_.collect(ctx, in.g, e, kInfinityBits);
  if (nonfinite_.count() > 0) return name_nonfinite(ctx, e);

  const size_t k = std::min(in.k, e.size()), first = out.count;
  subset_.draw(philox_, in.step << 32 | in.base, e.size(), k);
  out.reserve(first + k);
  subset_.for_each(
      [&](size_t at) { out.indices[out.count++] = in.base + static_cast<uint32_t>(at); });
  move_values(e, in.base, out, first);
  if (!shared_) drop_zeros(out, first);
  return {};
}

namespace {

std::unique_ptr<Selector> make_randk(const Settings& settings, const SelectorRank& rank) {
  const bool shared = settings.text("randk.seed") == "shared";
  const uint32_t stream = shared ? 0 : static_cast<uint32_t>(rank.rank) + 1;
  return std::make_unique<RandK>(Philox(rank.seed, Purpose::select, stream), shared);
}

const std::vector<Setting> kSettings = {
    {"seed",
     "worker",
     "worker: every rank its own indices; shared: all ranks the same, so that values alone need to "
     "travel",
     {"worker", "shared"}}};

const bool body = randk_bodies.add(Device::cpu, make_randk);
const bool selector =
    selectors().add({"randk", "k random entries",
                     [](Context& ctx, const Settings& s, const SelectorRank& rank) {
                       return randk_bodies(ctx.device(), s, rank);
                     },
                     kSettings});
const bool algorithm = algorithms().add({"randk",
                                         "random k, error feedback, sparse allgather",
                                         {.selector = "randk", .exchange = "allgather"}});

}  // namespace

}  // namespace tw
