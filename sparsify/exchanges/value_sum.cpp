#include "sparsify/exchanges/value_sum.h"

#include <algorithm>

#include "engine/core/copy.h"
#include "sparsify/exchanges/status_slot.h"

namespace tw {

void ValueSum::operator()(Context& ctx, Communicator& comm, const ExchangeStep& step, size_t n,
                          Control& control) {
  const SparseVector& mine = *step.mine;
  const bool whole = n == step.gradient.size();
  if (values_.size() < n + 1) values_.resize(n + 1);
  const std::span<float> values(values_.data(), n), values_control(values_.data(), n + 1);
  if (whole || mine.count < n) {
    std::ranges::fill(values, 0.0f);
    for (size_t i = 0; whole && i < mine.count; ++i) values[mine.indices[i]] = mine.values[i];
  } else {
    std::ranges::copy(mine.value_span(), values.begin());
  }
  if (!host_) host_.emplace(Device::cpu, ctx.threads());
  const StatusSlot slot(*host_, values_control, control);
  sum_(*host_, comm, values_control);
  slot.settle(*host_, comm, control);
  if (control.nonfinite_rank >= 0) return;

  if (whole) {
    copy_to_device(ctx, values, step.gradient);
  } else {
    const SparseView sum{mine.index_span(), values};
    process_sum_(ctx, comm, {&sum, 1}, step.gradient);
  }
}

}  // namespace tw
