// Every entry of at least a threshold, in one pass over memory; the k largest while there is none.
#pragma once

#include "sparsify/selectors/topk.h"

namespace tw {

class AboveThreshold {
 public:
  explicit AboveThreshold(Context& ctx) : exact_(ctx), candidates_(Candidates::create(ctx)) {}

  /// As Selector::select; `threshold` is a magnitude, 0: none.
  SelectInfo select(Context& ctx, float threshold, const SelectStep& in, SparseVector& out);

 private:
  TopK exact_;
  std::unique_ptr<Candidates> candidates_;
};

}  // namespace tw
