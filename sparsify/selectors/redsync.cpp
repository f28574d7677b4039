// Threshold binary search of RedSync (Fang, Fu, Yang and Hsieh 2019, arXiv 1808.04357).

#include "sparsify/selectors/redsync.h"

#include <algorithm>

#include "sparsify/sparsifier.h"

namespace tw {

SelectInfo RedSync::select(Context& ctx, const SelectStep& in, SparseVector& out) {
  const std::span<float> e = in.e;
  const size_t k = std::min(in.k, e.size());
  const Moments u = add_and_moments(ctx, in.g, e, blocks_);
  if (!u.finite()) return name_nonfinite(ctx, e);
  if (k == 1 || u.largest == 0)
    return exact_.select(ctx, {.g = {}, .e = e, .k = k, .base = in.base}, out);

  // one pass keeps the entries above the first threshold and counts those above each lower one
  const BetweenMeanAndMax between(u, e.size());
  const uint32_t lower[] = {between.bits(0.375), between.bits(0.25), between.bits(0.125)};
  candidates_->collect(ctx, {}, e, between.bits(0.5), lower);
  double low = 0, high = 1, r = 0;
  while (high - low > 0.2) {
    r = (low + high) / 2;
    const size_t count = candidates_->reaching(between.bits(r));
    if (k < count && count < 2 * k) break;
    (2 * count < k ? high : low) = r;
  }
  const uint32_t bits = between.bits(r);
  candidates_->widen(ctx, e, bits);
  if (candidates_->reaching(bits) > 2 * k)
    return candidates_->take_largest(ctx, 2 * k, ~0u, e, in.base, out);
  candidates_->take(ctx, bits, e, in.base, out);
  return {.threshold = std::bit_cast<float>(bits)};
}

namespace {

std::unique_ptr<Selector> make_redsync(Context& ctx, const Settings&, const SelectorRank&) {
  return std::make_unique<RedSync>(ctx);
}

const bool redsync_selector =
    selectors().add({"redsync",
                     "magnitudes above a share of the maximum, found by bisection",
                     {.make = make_redsync, .volume = Volume::at_most_2k}});
const bool redsync_algorithm =
    sparsifiers().add({"redsync",
                       "RedSync's threshold search, error feedback, sparse allgather",
                       {.selector = "redsync", .exchange = "allgather"}});

}  // namespace

}  // namespace tw
