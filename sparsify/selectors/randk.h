// Rand-k: k random entries of u = g + e, without replacement.
#pragma once

#include "engine/core/dispatch.h"
#include "sparsify/kernels/candidates.h"
#include "sparsify/kernels/floyd_sample.h"
#include "sparsify/selector.h"

namespace tw {

/// Moves a random subset of e to a sparse vector, indices ascending.
class SubsetMover {
 public:
  virtual ~SubsetMover() = default;
  /// Moves e at the positions of RandomSubset::draw. `zeros`: entries that are 0 are moved too.
  virtual void move(Context& ctx, const FloydSample& sample, bool zeros, std::span<float> e,
                    uint32_t base, SparseVector& out) = 0;
};
inline constinit DispatchTable<std::unique_ptr<SubsetMover>()> subset_mover_dispatch{"randk"};

/// The indices depend on seed, step and slice, and on the rank unless they are shared.
class RandK : public Selector {
 public:
  RandK(Context& ctx, const Philox& philox, bool shared)
      : philox_(philox),
        shared_(shared),
        nonfinite_(Candidates::create(ctx)),
        subset_(subset_mover_dispatch(ctx.device())) {}

  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override;

 private:
  Philox philox_;
  bool shared_;
  std::unique_ptr<Candidates> nonfinite_;
  std::unique_ptr<SubsetMover> subset_;
};

}  // namespace tw
