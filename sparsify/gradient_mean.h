// GradientMean: the mean over the ranks of gradients of any tensors, as a sparsifier forms it.
#pragma once

#include <utility>

#include "sparsify/sync_sgd.h"

namespace tw {

/// SyncSgd on parameters that are 0, at a learning rate of -1: what it adds to them is the mean
/// that an update subtracts.
class GradientMean {
 public:
  /// `tensors`: allocated. A momentum of `config` after the mean, and its weight decay, belong to
  /// the mean. Collective.
  GradientMean(Context& ctx, Communicator& comm, ParameterArena tensors, const SgdConfig& config,
               const Settings& settings)
      : ctx_(ctx), arena_(std::move(tensors)), sgd_(ctx, comm, arena_, config, settings) {}

  /// Its gradients are those to exchange, its values the mean.
  const ParameterArena& arena() const { return arena_; }
  /// Exchanges the gradients; afterwards the values are their mean, the same bits on all ranks. The
  /// learning rate of `input` is ignored. Collective.
  StepReport run(StepInput input) {
    ops::fill(ctx_, arena_.values(), 0);
    input.lr = -1;
    return sgd_.step(input);
  }
  SyncSgd& sgd() { return sgd_; }

 private:
  Context& ctx_;
  ParameterArena arena_;
  SyncSgd sgd_;
};

}  // namespace tw
