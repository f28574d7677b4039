// GradientMean: the mean over the ranks of gradients of any tensors, as a sparsifier forms it.
#pragma once

#include "sparsify/sync_sgd.h"

namespace tw {

/// SyncSgd on parameters that are 0, at a learning rate of -1: what it adds to them is the mean
/// that an update subtracts.
class GradientMean {
 public:
  /// The tensors are those that `arena` declares; its vectors are allocated here. A momentum of
  /// `config` after the mean, and its weight decay, belong to the mean. Collective.
  GradientMean(Context& ctx, Communicator& comm, ParameterArena& arena, const SgdConfig& config,
               const Settings& settings)
      : ctx_(ctx), arena_(allocated(ctx, arena)), sgd_(ctx, comm, arena, config, settings) {}

  /// Exchanges the gradients in the arena; afterwards its values are the mean, the same bits on
  /// all ranks. The learning rate of `input` counts nothing. Collective.
  StepReport run(StepInput input) {
    ops::fill(ctx_, arena_.values(), 0);
    input.lr = -1;
    return sgd_.step(input);
  }

  SyncSgd& sgd() { return sgd_; }

 private:
  static ParameterArena& allocated(Context& ctx, ParameterArena& arena) {
    arena.allocate(ctx, {});
    return arena;
  }

  Context& ctx_;
  ParameterArena& arena_;
  SyncSgd sgd_;
};

}  // namespace tw
