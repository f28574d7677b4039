// The selector and exchange of one rank, without the optimizer.
#pragma once

#include <algorithm>

#include "comm/collectives/collectives.h"
#include "sparsify/exchange.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw {

class ExchangeRig {
 public:
  ExchangeRig(Context& ctx, Communicator& comm, size_t d, const std::string& sparsifier,
              const Settings& settings = default_settings())
      : gradient(d + 1), residual(d), before(d), ctx_(ctx), comm_(comm) {
    const Sparsifier parts = resolve_sparsifier({.sparsifier = sparsifier}, settings);
    const ExchangeEntry& entry = exchanges().find(parts.exchange).value;
    exchange = entry(settings, {.tensors = {{.shape = matrix_shape(d)}},
                                .machines = gather(comm, comm.machine())});
    updates_at_root = entry.updates_at_root;
    compresses_ = entry.compresses;
    if (!parts.selector.empty())
      selector_ = selectors().find(parts.selector).value(ctx, settings, {.rank = comm.rank()});
  }

  std::span<float> sum() { return std::span(gradient).first(residual.size()); }

  void set_gradients(const GradientKind& kind, uint64_t step) {
    for (size_t i = 0; i < residual.size(); ++i)
      gradient[i] = SgdRig::gradient(kind, comm_.rank(), step, i);
  }

  /// before = gradient + residual; selects k entries of it and sums them over the ranks. Steps
  /// count from the end of Exchange::dense_exchanges().
  void step(size_t k, uint64_t step_number = 0) {
    for (size_t i = 0; i < before.size(); ++i) before[i] = gradient[i] + residual[i];
    selected.count = 0;
    control = {};
    const ExchangeStep step{.gradient = sum(),
                            .gradient_control = gradient,
                            .residual = residual,
                            .mine = &selected,
                            .k = std::min(k, residual.size()),
                            .step = exchange->dense_exchanges() + step_number};
    if (compresses_)
      for (size_t i = 0; i < before.size(); ++i) gradient[i] = before[i];
    exchange->prepare(ctx_, comm_, step, control);
    if (selector_ && exchange->selects(comm_, step)) {
      const double d = static_cast<double>(residual.size());
      const SelectStep in{.g = sum(),
                          .e = residual,
                          .k = k,
                          .density = static_cast<double>(k) / d,
                          .step = step_number,
                          .threshold = exchange->threshold()};
      if (k < residual.size())
        selector_->select(ctx_, in, selected);
      else
        select_all(ctx_, in, selected);
    }
    exchange->run(ctx_, comm_, step, control);
    if (updates_at_root) exchange->publish(ctx_, comm_, sum());
  }

  /// The number of indices at which the sum plus all residuals differs from the sum of all
  /// `before`.
  size_t lost() {
    const std::vector<float> total = summed(ctx_, comm_, before);
    const std::vector<float> behind = summed(ctx_, comm_, residual);
    size_t wrong = 0;
    for (size_t i = 0; i < total.size(); ++i) wrong += gradient[i] + behind[i] != total[i];
    return wrong;
  }

  /// Indices of the non-zero sums.
  std::vector<uint32_t> kept() const {
    std::vector<uint32_t> indices;
    for (uint32_t i = 0; i < residual.size(); ++i)
      if (gradient[i] != 0) indices.push_back(i);
    return indices;
  }

  std::vector<float> gradient, residual, before;
  SparseVector selected;
  Control control;
  std::unique_ptr<Exchange> exchange;
  bool updates_at_root = false;

 private:
  Context& ctx_;
  Communicator& comm_;
  bool compresses_ = false;
  std::unique_ptr<Selector> selector_;
};

}  // namespace tw
