// Selector: chooses which entries of u = g + e travel in this step.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "engine/context.h"
#include "engine/registry.h"
#include "sparsify/sparse_vector.h"

namespace tw {

/// What a selector found out on the way.
struct SelectInfo {
  float threshold = 0;          ///< smallest magnitude it meant to send
  size_t nonfinite = SIZE_MAX;  ///< index of the first NaN or infinity in u, SIZE_MAX if none
  float nonfinite_value = 0;    ///< the entry of u that stands there
};

class Selector {
 public:
  virtual ~Selector() = default;

  /// One step with error feedback: u = g + e; chosen entries of u go to `out` (appended behind
  /// out.count, ascending, each index plus `base`); e = u with the chosen entries set to zero.
  /// g and e have equal length; k >= 1 entries are asked for (k may exceed the length). Equal
  /// magnitudes: the lower index first. Zeros are never sent, so fewer than k may come out.
  /// When u has a NaN or infinity, info names it and the selection is not to be used.
  virtual SelectInfo select(Context& ctx, std::span<const float> g, std::span<float> e, size_t k,
                            uint32_t base, SparseVector& out) = 0;
};

/// Chooses all non-zero entries: what every selector does for density >= 1.
SelectInfo select_all(Context& ctx, std::span<const float> g, std::span<float> e, uint32_t base,
                      SparseVector& out);

/// k = max(1, floor(density * d)), in double.
size_t entries_to_keep(double density, size_t d);

/// Makes a selector for the device of the context.
using SelectorFactory = std::function<std::unique_ptr<Selector>(Context&, const Settings&)>;
Registry<SelectorFactory>& selectors();

}  // namespace tw
