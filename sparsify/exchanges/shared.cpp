// The exchange for selectors with the same indices on all ranks: only the k values are sent, summed
// by a dense collective (`allreduce.collective`, `allreduce.values`). A status float is summed with
// them.
//
// Bytes over all ranks, with a bandwidth-optimal collective (ring): 2 (P-1) 4 (k+1), half of it for
// values of 16 bits.
// Messages and seconds: those of the collective for k+1 elements.

#include <algorithm>
#include <optional>

#include "engine/core/copy.h"
#include "sparsify/exchanges/dense_sum.h"
#include "sparsify/exchanges/status_slot.h"
#include "sparsify/kernels/sparse_ops.h"

namespace tw {

namespace {

class SharedIndices : public Exchange {
 public:
  explicit SharedIndices(const Settings& settings) : sum_(settings) {}

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    const SparseVector& mine = *step.mine;
    const size_t d = step.gradient.size(), n = std::min(step.k, d);
    if (values_.size() < n + 1) values_.resize(n + 1), scratch_.resize(n + 1);
    const std::span<float> values(values_.data(), n), values_control(values_.data(), n + 1);
    if (control.nonfinite != SIZE_MAX || n == d) {
      // the entries of select_all, without zeros; or none, in a step that ends in a fault
      std::ranges::fill(values, 0.0f);
      for (size_t i = 0; i < mine.count; ++i) values[mine.indices[i]] = mine.values[i];
    } else {
      check<Fault>(mine.count == n,
                   "[shared] rank {} selected {} entries; expected {} on every rank", comm.rank(),
                   mine.count, n);
      std::ranges::copy(mine.value_span(), values.begin());
    }
    load_ = {n, n * sum_.value_bytes()};
    if (!host_) host_.emplace(Device::cpu, ctx.threads());
    const StatusSlot slot(*host_, values_control, control);
    sum_(*host_, comm, values_control, std::span(scratch_).first(n + 1));
    slot.settle(*host_, comm, control);
    if (control.nonfinite_rank >= 0) return;

    if (n == d) {
      copy_to_device(ctx, values, step.gradient);
    } else {
      const SparseView sum{mine.index_span(), values};
      sparse_sum(ctx, {&sum, 1}, step.gradient);
    }
  }

  uint64_t wire_bytes(int ranks, size_t, size_t entries) const override {
    const uint64_t k = entries / static_cast<size_t>(ranks);
    return sum_.wire_bytes(ranks, k);
  }

 private:
  DenseSum sum_;
  std::optional<Context> host_;  // entries are in host memory
  std::vector<float> values_, scratch_;
};

const bool shared_registered =
    exchanges().add({"shared",
                     "sums values only; for selectors with the same indices on all ranks",
                     {.make = make_exchange<SharedIndices>,
                      .needs_shared_indices = true,
                      .validate = DenseSum::validate}});

}  // namespace

}  // namespace tw
