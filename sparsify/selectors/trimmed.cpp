// Trimmed top-k of RedSync (Fang, Fu, Yang and Hsieh 2019, arXiv 1808.04357).

#include "sparsify/selectors/trimmed.h"

#include <algorithm>

#include "sparsify/sparsifier.h"

namespace tw {

SelectInfo Trimmed::select(Context& ctx, const SelectStep& in, SparseVector& out) {
  const std::span<float> e = in.e;
  const size_t k = std::min(in.k, e.size());
  const Moments u = add_and_moments(ctx, in.g, e, blocks_);
  if (!u.finite()) return name_nonfinite(ctx, e);

  // At usual densities a bell-shaped vector needs r >= .4. The candidates for .4 also answer for
  // every higher r.
  const BetweenMeanAndMax between(u, e.size());
  const uint32_t lower[] = {between.bits(0.2), between.bits(0.0)};
  candidates_->collect(ctx, {}, e, between.bits(0.4), lower);
  for (const double r : {0.8, 0.6, 0.4, 0.2, 0.0}) {
    if (candidates_->reaching(between.bits(r)) < k) continue;
    candidates_->widen(ctx, e, between.bits(r));
    return candidates_->take_largest(ctx, k, ~0u, e, in.base, out);
  }
  return exact_.select(ctx, {.g = {}, .e = e, .k = k, .base = in.base}, out);
}

namespace {

std::unique_ptr<Selector> make_trimmed(Context& ctx, const Settings&, const SelectorRank&) {
  return std::make_unique<Trimmed>(ctx);
}

const bool trimmed_selector =
    selectors().add({"trimmed",
                     "the k largest of those above a share of the maximum",
                     {.make = make_trimmed, .volume = Volume::exactly_k}});
const bool trimmed_algorithm =
    sparsifiers().add({"trimmed",
                       "trimmed top-k, error feedback, sparse allgather",
                       {.selector = "trimmed", .exchange = "allgather"}});

}  // namespace

}  // namespace tw
