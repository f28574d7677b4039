// Exact top-k of u = g + e for about the price of the addition: a threshold from a small sample,
// candidates compacted inside the one pass that adds, and an exact selection among those few.
#pragma once

#include <vector>

#include "engine/dispatch.h"
#include "sparsify/candidates.h"
#include "sparsify/selector.h"

namespace tw {

/// The body for the CPU. Exact whatever the sample says: when fewer than k candidates pass, the
/// threshold comes from a histogram of all of u and the candidates are collected again.
class TopK : public Selector {
 public:
  /// `resolution`: mask of the magnitude bits that count; where two magnitudes agree in them, the
  /// lower index goes first. All bits: exact. The upper 16: what a LogHistogram can tell apart.
  explicit TopK(uint32_t resolution) : resolution_(resolution) {}

  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override;

 private:
  uint64_t cut_key(size_t k);

  uint32_t resolution_;
  Candidates candidates_;
  LogHistogram histogram_;
  std::vector<LogHistogram> whole_;  // of all of u, one a thread
  std::vector<uint64_t> keys_;
};

extern Bodies<std::unique_ptr<Selector>(const Settings&)> topk_bodies;

}  // namespace tw
