#include "sparsify/selector.h"

#include <algorithm>
#include <utility>

#include "sparsify/magnitude.h"

namespace tw {

SelectInfo select_all(Context& ctx, const SelectStep& in, SparseVector& out) {
  const auto [g, e] = std::pair(in.g, in.e);
  check(ctx.device() == Device::cpu, "[select_all] this build has no {} body", name(ctx.device()));
  SelectInfo info;
  // entries are written always and kept by moving on, so each needs a place
  out.reserve(out.count + e.size());
  size_t count = out.count;
  for (size_t i = 0; i < e.size(); ++i) {
    const float u = g[i] + e[i];
    if (magnitude_bits(u) >= kInfinityBits && info.nonfinite == SIZE_MAX) [[unlikely]]
      info = {.nonfinite = i, .nonfinite_value = u};
    out.indices[count] = in.base + static_cast<uint32_t>(i);
    out.values[count] = u;
    count += u != 0;
    e[i] = 0;
  }
  out.count = count;
  return info;
}

size_t entries_to_keep(double density, size_t d) {
  return std::max<size_t>(1, static_cast<size_t>(density * static_cast<double>(d)));
}

Registry<SelectorFactory>& selectors() {
  static Registry<SelectorFactory> registry("selector");
  return registry;
}

}  // namespace tw
