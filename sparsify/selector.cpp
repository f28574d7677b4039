#include "sparsify/selector.h"

#include <algorithm>
#include <cmath>

#include "engine/core/copy.h"
#include "engine/ops/vector.h"

namespace tw {

SelectInfo select_all(Context& ctx, const SelectStep& in, SparseVector& out) {
  ops::add(ctx, in.g, in.e);
  const SelectInfo info = name_nonfinite(ctx, in.e);
  if (info.nonfinite != SIZE_MAX) return info;
  HostFloats u(ctx, in.e);
  out.reserve(out.count + in.e.size());
  for (uint32_t at = in.base; const float value : u.span()) out.push(at++, value);
  ops::fill(ctx, in.e, 0);
  return {};
}

size_t entries_to_keep(double density, size_t d, Volume volume) {
  const double part = density * static_cast<double>(d);
  return std::max<size_t>(
      1, static_cast<size_t>(volume == Volume::at_most_k ? std::ceil(part) : part));
}

std::string volume_text(Volume volume, size_t k) {
  switch (volume) {
    case Volume::exactly_k:
      return fmt::format("{}", k);
    case Volume::at_most_k:
      return fmt::format("at most {}", k);
    case Volume::at_most_2k:
      return fmt::format("about {} (at most twice as many)", k);
    case Volume::any:
      return fmt::format("any number (aimed at: {})", k);
  }
  return {};
}

Registry<SelectorEntry>& selectors() {
  static Registry<SelectorEntry> registry("selector");
  return registry;
}

}  // namespace tw
