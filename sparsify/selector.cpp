#include "sparsify/selector.h"

#include <algorithm>
#include <utility>

#include "engine/core/copy.h"
#include "engine/ops/sgd.h"
#include "engine/ops/vector.h"
#include "sparsify/kernels/stream_compaction.h"

namespace tw {

SelectInfo name_nonfinite(Context& ctx, std::span<const float> u) {
  const size_t at = ops::first_nonfinite(ctx, u);
  if (at == u.size()) return {};
  return {.nonfinite = at, .nonfinite_value = value_at(ctx, &u[at])};
}

void move_values(std::span<float> e, uint32_t base, SparseVector& out, size_t first) {
  // each of these is a miss to memory: fetch well ahead
  constexpr size_t ahead = 32;
  for (size_t i = first; i < out.count; ++i) {
    if (i + ahead < out.count) __builtin_prefetch(&e[out.indices[i + ahead] - base], 1);
    out.values[i] = std::exchange(e[out.indices[i] - base], 0.0f);
  }
}

SelectInfo select_all(Context& ctx, const SelectStep& in, SparseVector& out) {
  ops::add(ctx, in.g, in.e);
  const SelectInfo info = name_nonfinite(ctx, in.e);
  if (info.nonfinite != SIZE_MAX) return info;
  HostFloats u(ctx, in.e);
  const std::span<float> e = u.span();
  out.reserve(out.count + e.size());
  out.count += add_and_compact(nullptr, e.data(), e.size(), 1, in.base,
                               {out.indices.data() + out.count, out.values.data() + out.count});
  ops::fill(ctx, in.e, 0);
  return {};
}

size_t entries_to_keep(double density, size_t d) {
  return std::max<size_t>(1, static_cast<size_t>(density * static_cast<double>(d)));
}

Registry<SelectorFactory>& selectors() {
  static Registry<SelectorFactory> registry("selector");
  return registry;
}

}  // namespace tw
