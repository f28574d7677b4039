// Threshold binary search of RedSync (Fang, Fu, Yang and Hsieh 2019, arXiv 1808.04357): looks for a
// threshold that between k and 2k entries exceed, and sends at most 2k.
#include "sparsify/selectors/mean_to_max.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

///   M = max |u|;  A = mean |u|;  low = 0;  high = 1
///   while high - low > 0.2:
///       r = (low + high) / 2;  S = {i : |u_i| > A + r (M - A)}
///       k < |S| < 2k: stop;   |S| < k/2: high = r;   else low = r
///   sends the last S, its 2k largest if it is larger; k = 1 and zero vectors: exact top-k
class RedSync final : public MeanToMaxSelector {
 public:
  using MeanToMaxSelector::MeanToMaxSelector;

 private:
  SelectInfo search(Context& ctx, const SelectStep& in, const MeanToMax& range,
                    SparseVector& out) override {
    const size_t k = in.k;
    if (k == 1 || range.max == 0) return exact_.select(ctx, in, out);

    // one pass keeps the entries above the first threshold and counts those above each lower one
    const uint32_t lower[] = {range.bits(0.375), range.bits(0.25), range.bits(0.125)};
    candidates_->collect(ctx, {}, in.e, range.bits(0.5), lower);
    double low = 0, high = 1, r = 0;
    while (high - low > 0.2) {
      r = (low + high) / 2;
      const size_t count = candidates_->reaching(range.bits(r));
      if (k < count && count < 2 * k) break;
      (2 * count < k ? high : low) = r;
    }
    const uint32_t bits = range.bits(r);
    candidates_->widen(ctx, in.e, bits);
    if (candidates_->reaching(bits) > 2 * k)
      return candidates_->take_largest(ctx, 2 * k, ~0u, in.e, in.base, out);
    candidates_->take(ctx, bits, in.e, in.base, out);
    return {.threshold = std::bit_cast<float>(bits)};
  }
};

const bool redsync_selector =
    selectors().add({"redsync",
                     "magnitudes above a threshold between mean and maximum, found by bisection",
                     {.make = make_selector<RedSync>, .volume = Volume::at_most_2k}});
const bool redsync_sparsifier =
    sparsifiers().add({"redsync",
                       "RedSync's threshold search, error feedback, sparse allgather",
                       {.selector = "redsync", .exchange = "allgather"}});

}  // namespace

}  // namespace tw
