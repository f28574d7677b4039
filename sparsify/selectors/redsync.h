// RedSync's binary search for a threshold that k to 2k entries exceed. At most 2k entries are sent.
#pragma once

#include "sparsify/selector.h"
#include "sparsify/selectors/trimmed.h"

namespace tw {

///   M = max |u|;  A = mean |u|;  low = 0;  high = 1
///   while high - low > 0.2:
///       r = (low + high) / 2;  S = {i : |u_i| > A + r (M - A)}
///       k < |S| < 2k: stop;   |S| < k/2: high = r;   else low = r
///   sends the last S, its 2k largest if it is larger; k = 1 and zero vectors: exact top-k
class RedSync : public Selector {
 public:
  explicit RedSync(Context& ctx) : candidates_(Candidates::create(ctx)), exact_(ctx) {}

  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override;

 private:
  std::vector<Moments> blocks_;
  std::unique_ptr<Candidates> candidates_;
  TopK exact_;
};

}  // namespace tw
