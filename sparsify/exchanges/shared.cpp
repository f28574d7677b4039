// The exchange for selectors with the same indices on all ranks: only the k values are sent, summed
// by a dense collective (`allreduce.collective`, `allreduce.values`). A status float is summed with
// them.
//
// Bytes over all ranks, with a bandwidth-optimal collective (ring): 2 (P-1) 4 (k+1), half of it for
// values of 16 bits.
// Messages and seconds: those of the collective for k+1 elements.

#include <algorithm>

#include "sparsify/exchanges/value_sum.h"

namespace tw {

namespace {

class SharedIndices : public Exchange {
 public:
  explicit SharedIndices(const Settings& settings) : sum_(settings) {}

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    const size_t d = step.gradient.size(), n = std::min(step.k, d), selected = step.mine->count;
    check<Fault>(control.nonfinite != SIZE_MAX || n == d || selected == n,
                 "[shared] rank {} selected {} entries; expected {} on every rank", comm.rank(),
                 selected, n);
    load_ = {n, n * sum_.value_bytes()};
    sum_(ctx, comm, step, n, control);
  }

  uint64_t wire_bytes(int ranks, size_t, size_t entries) const override {
    const uint64_t k = entries / static_cast<size_t>(ranks);
    return sum_.wire_bytes(ranks, k);
  }
  double seconds(const LinkCost& link, int ranks, size_t, size_t k) const override {
    return sum_.seconds(link, ranks, k);
  }
  bool sums_densely() const override { return true; }

 private:
  ValueSum sum_;
};

const bool shared_registered =
    exchanges().add({"shared",
                     "sums values only; for selectors with the same indices on all ranks",
                     {.make = make_exchange<SharedIndices>,
                      .needs_shared_indices = true,
                      .validate = DenseSum::validate}});

}  // namespace

}  // namespace tw
