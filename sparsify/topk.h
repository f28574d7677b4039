// Exact top-k of u = g + e for about the price of the addition: a threshold from a small sample,
// candidates compacted inside the one pass that adds, and an exact selection among those few.
#pragma once

#include <vector>

#include "engine/dispatch.h"
#include "sparsify/selector.h"
#include "sparsify/top_candidates.h"

namespace tw {

/// The body for the CPU. Exact whatever the sample says: when fewer than k candidates pass, the
/// threshold comes from a histogram of all of u and the candidates are collected again.
class TopK : public Selector {
 public:
  explicit TopK(uint32_t resolution = ~0u) : top_(resolution) {}

  /// in.g may be empty: in.e holds u already.
  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override;

 private:
  TopCandidates top_;
  Candidates candidates_;
  LogHistogram sample_;
  std::vector<LogHistogram> whole_;  // of all of u, one a thread
};

extern Bodies<std::unique_ptr<Selector>(const Settings&)> topk_bodies;

}  // namespace tw
