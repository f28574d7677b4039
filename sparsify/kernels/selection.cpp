#include "sparsify/kernels/selection.h"

#include <utility>

#include "engine/core/copy.h"
#include "engine/ops/nonfinite.h"

namespace tw {

SelectInfo name_nonfinite(Context& ctx, std::span<const float> u) {
  const size_t at = ops::first_nonfinite(ctx, u);
  if (at == u.size()) return {};
  return {.nonfinite = at, .nonfinite_value = value_at(ctx, &u[at])};
}

void move_values(std::span<float> e, uint32_t base, SparseVector& out, size_t first) {
  // each access is a cache miss: prefetch
  constexpr size_t ahead = 32;
  for (size_t i = first; i < out.count; ++i) {
    if (i + ahead < out.count) __builtin_prefetch(&e[out.indices[i + ahead] - base], 1);
    out.values[i] = std::exchange(e[out.indices[i] - base], 0.0f);
  }
}

}  // namespace tw
