// Threshold binary search of RedSync (Fang, Fu, Yang and Hsieh 2019, arXiv 1808.04357): looks for a
// threshold that between k and 2k entries exceed, and sends at most 2k.
#include <algorithm>

#include "sparsify/kernels/candidates.h"
#include "sparsify/selector.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

///   M = max |u|;  A = mean |u|;  low = 0;  high = 1
///   while high - low > 0.2:
///       r = (low + high) / 2;  S = {i : |u_i| > A + r (M - A)}
///       k < |S| < 2k: stop;   |S| < k/2: high = r;   else low = r
///   sends the last S, its 2k largest if it is larger; k = 1 and zero vectors: exact top-k
/// The 2k largest entries decide every round, so that the CPU reads memory once.
class RedSync final : public Selector {
 public:
  explicit RedSync(Context& ctx) : candidates_(Candidates::create(ctx)) {}

  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override {
    const size_t n = in.e.size(), k = std::min(in.k, n);
    Moments u;
    candidates_->collect_largest(ctx, in.g, in.e, std::min(2 * k, n), &u);
    if (!u.finite()) return name_nonfinite(ctx, in.e);
    if (k == 1 || u.largest == 0) return candidates_->take_largest(ctx, k, ~0u, in.e, in.base, out);

    const double mean = u.magnitude / static_cast<double>(n), range = double{u.largest} - mean;
    double low = 0, high = 1;
    uint32_t bits = 0;
    size_t count = 0;
    while (high - low > 0.2) {
      const double r = (low + high) / 2;
      bits = bits_above(mean + r * range);
      count = reaching(ctx, in.e, bits, 2 * k);
      if (k < count && count < 2 * k) break;
      (2 * count < k ? high : low) = r;
    }
    if (count >= 2 * k) return candidates_->take_largest(ctx, 2 * k, ~0u, in.e, in.base, out);
    candidates_->take(ctx, bits, in.e, in.base, out);
    return {.threshold = std::bit_cast<float>(bits)};
  }

 private:
  /// The number of entries of at least `bits`; any number from `most` on if there are as many.
  size_t reaching(Context& ctx, std::span<float> e, uint32_t bits, size_t most) {
    if (!candidates_->keeps(bits) && candidates_->count() >= most) return most;
    candidates_->widen(ctx, e, bits);
    return candidates_->reaching(bits);
  }

  std::unique_ptr<Candidates> candidates_;
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
