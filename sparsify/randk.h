// Rand-k: k random entries of u = g + e, without replacement.
#pragma once

#include "engine/dispatch.h"
#include "sparsify/candidates.h"
#include "sparsify/random_subset.h"
#include "sparsify/selector.h"

namespace tw {

/// The body for the CPU. Which entries: a function of seed, step and slice, and of the rank unless
/// it is shared.
class RandK : public Selector {
 public:
  RandK(const Philox& philox, bool shared) : philox_(philox), shared_(shared) {}

  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override;
  bool common_indices() const override { return shared_; }

 private:
  Philox philox_;
  bool shared_;
  RandomSubset subset_;
  Candidates nonfinite_;
};

extern Bodies<std::unique_ptr<Selector>(const Settings&, const SelectorRank&)> randk_bodies;

}  // namespace tw
