#include "sparsify/selectors/mean_to_max.h"

#include <algorithm>

namespace tw {

SelectInfo MeanToMaxSelector::select(Context& ctx, const SelectStep& in, SparseVector& out) {
  const Moments u = add_and_moments(ctx, in.g, in.e, blocks_);
  if (!u.finite()) return name_nonfinite(ctx, in.e);
  const size_t n = in.e.size();
  return search(ctx, {.g = {}, .e = in.e, .k = std::min(in.k, n), .base = in.base}, {u, n}, out);
}

}  // namespace tw
