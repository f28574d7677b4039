// Trimmed top-k of RedSync (Fang, Fu, Yang and Hsieh 2019, arXiv 1808.04357): the k largest entries
// above a threshold between mean and maximum.
#include "sparsify/selectors/mean_to_max.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

///   M = max |u|;  A = mean |u|;  for r = .8, .6, .4, .2, 0:  S = {i : |u_i| > A + r (M - A)}
///   sends the k largest of the first S with at least k entries; of u if there is none
class Trimmed final : public MeanToMaxSelector {
 public:
  using MeanToMaxSelector::MeanToMaxSelector;

 private:
  SelectInfo search(Context& ctx, const SelectStep& in, const MeanToMax& range,
                    SparseVector& out) override {
    // At usual densities a bell-shaped vector needs r >= .4. The candidates for .4 also answer for
    // every higher r.
    const uint32_t lower[] = {range.bits(0.2), range.bits(0.0)};
    candidates_->collect(ctx, {}, in.e, range.bits(0.4), lower);
    for (const double r : {0.8, 0.6, 0.4, 0.2, 0.0}) {
      if (candidates_->reaching(range.bits(r)) < in.k) continue;
      candidates_->widen(ctx, in.e, range.bits(r));
      return candidates_->take_largest(ctx, in.k, ~0u, in.e, in.base, out);
    }
    return exact_.select(ctx, in, out);
  }
};

const bool trimmed_selector =
    selectors().add({"trimmed",
                     "the k largest of those above a threshold between mean and maximum",
                     {.make = make_selector<Trimmed>, .volume = Volume::exactly_k, .exact = true}});
const bool trimmed_sparsifier =
    sparsifiers().add({"trimmed",
                       "trimmed top-k, error feedback, sparse allgather",
                       {.selector = "trimmed", .exchange = "allgather"}});

}  // namespace

}  // namespace tw
