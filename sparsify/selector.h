// Selector: chooses which entries of u = g + e travel in this step.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "engine/core/context.h"
#include "engine/core/registry.h"
#include "sparsify/kernels/selection.h"

namespace tw {

/// What is asked of a selector in one step, for one slice of the flat vector.
struct SelectStep {
  std::span<const float> g;  ///< the gradient, or what momentum correction made of it
  std::span<float> e;        ///< as long as g: the residual; what is not chosen stays here
  size_t k = 1;              ///< entries asked for; may exceed the length
  double density = 1;        ///< what k was computed from
  uint32_t base = 0;         ///< place of the slice in the flat vector, added to every index
  uint64_t step = 0;
  /// Above 0: the magnitude from which on the exchange would have entries (Exchange::threshold).
  float threshold = 0;
};

class Selector {
 public:
  virtual ~Selector() = default;

  /// One step with error feedback: u = g + e; chosen entries of u go to `out` (appended behind
  /// out.count, ascending); e = u with the chosen entries set to zero. Equal magnitudes: the lower
  /// index first. Zeros are never sent, so fewer than k may come out.
  /// When u has a NaN or infinity, info names it and the selection is not to be used.
  virtual SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) = 0;
  /// True when all ranks choose the same indices, whatever their vectors: then zeros are sent too,
  /// and only values need to travel.
  virtual bool shared_indices() const { return false; }
};

/// Chooses all non-zero entries: what every selector does for density >= 1.
SelectInfo select_all(Context& ctx, const SelectStep& in, SparseVector& out);

/// k = max(1, floor(density * d)), in double.
size_t entries_to_keep(double density, size_t d);

/// Who a selector works for.
struct SelectorRank {
  int rank = 0;
  uint64_t seed = 1;
};
/// Makes a selector for the device of the context.
using SelectorFactory =
    std::function<std::unique_ptr<Selector>(Context&, const Settings&, const SelectorRank&)>;
Registry<SelectorFactory>& selectors();

}  // namespace tw
