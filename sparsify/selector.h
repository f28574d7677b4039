// Selector: chooses which entries of u = g + e are sent in a step.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "engine/core/context.h"
#include "engine/core/registry.h"
#include "sparsify/kernels/selection.h"
#include "sparsify/trait.h"

namespace tw {

/// One selection: a slice of the flat vector in one step.
struct SelectStep {
  std::span<const float> g;  ///< the gradient, or the velocity when momentum comes first
  std::span<float> e;        ///< the residual, as long as g; keeps the entries that are not sent
  size_t k = 1;              ///< entries asked for; may exceed the length
  double density = 1;        ///< the density that k was computed from
  uint32_t base = 0;         ///< offset of the slice, added to every index
  uint64_t step = 0;
  size_t slice = 0;     ///< number of the slice in the model, below SelectorRank::slices
  bool warmup = false;  ///< the density is that of a warm-up epoch
  /// Above 0: the least magnitude that the exchange asks for (Exchange::threshold).
  float threshold = 0;
};

class Selector {
 public:
  virtual ~Selector() = default;

  /// Selects with error feedback: u = g + e; selected entries of u are appended to `out`, indices
  /// ascending; e becomes u with zeros at the selected indices. Of equal magnitudes the lower index
  /// is selected. Zeros are not sent, so fewer than k entries may result; a selector with shared
  /// indices sends zeros too.
  /// If u has a NaN or infinity, the result names it and the selection must not be used.
  virtual SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) = 0;
  /// The same for several slices of one step, in their order; `infos`: a result for each. A
  /// selector may process them together.
  virtual void select_slices(Context& ctx, std::span<const SelectStep> slices,
                             std::span<SelectInfo> infos, SparseVector& out) {
    for (size_t i = 0; i < slices.size(); ++i) infos[i] = select(ctx, slices[i], out);
  }
  /// State of all slices, other than the residual, that the next step depends on; checkpoints store
  /// it.
  virtual std::span<std::byte> state() { return {}; }
};

/// Selects all entries. SyncSgd calls it in place of the selector at a density of 1 or more.
SelectInfo select_all(Context& ctx, const SelectStep& in, SparseVector& out);

/// Rank and seed of a selector with random draws; slices of a selector with a state for each.
struct SelectorRank {
  int rank = 0;
  uint64_t seed = 1;
  size_t slices = 1;
};
/// Makes a selector for the device of the context.
using SelectorFactory =
    std::function<std::unique_ptr<Selector>(Context&, const Settings&, const SelectorRank&)>;

/// The factory of a selector with a constructor from the context, settings and rank, from the first
/// two, or from the context.
template <class T>
std::unique_ptr<Selector> make_selector(Context& ctx, const Settings& settings,
                                        const SelectorRank& rank) {
  if constexpr (std::is_constructible_v<T, Context&, const Settings&, const SelectorRank&>)
    return std::make_unique<T>(ctx, settings, rank);
  else if constexpr (std::is_constructible_v<T, Context&, const Settings&>)
    return std::make_unique<T>(ctx, settings);
  else
    return std::make_unique<T>(ctx);
}

/// How many entries a selector sends when it is asked for k.
enum class Volume : uint8_t {
  exactly_k,   ///< k; fewer only because zeros are not sent
  at_most_k,   ///< ceil(density d), or fewer if fewer entries reach a threshold
  at_most_2k,  ///< entries above a searched threshold, limited to 2k
  any,         ///< all entries above a threshold: from none to the whole slice
};
/// k = max(1, floor(density * d)), in double; of at_most_k: ceil instead of floor.
size_t entries_to_keep(double density, size_t d, Volume volume = Volume::exactly_k);
/// The entries that a selector of this volume sends when it is asked for k: `26`, `at most 26`.
std::string volume_text(Volume volume, size_t k);

/// What is registered under a selector's name.
struct SelectorEntry {
  SelectorFactory make{};
  Trait<Volume> volume;  ///< no default, so every selector states it
  /// True when all ranks select the same indices for any vectors, so that only values are sent.
  Trait<bool> shared_indices = false;
  bool exact = false;  ///< always selects the k largest magnitudes
  /// Elements of the chunks that share k, each by its length; SIZE_MAX: k is that of the slice.
  Trait<size_t> chunk = SIZE_MAX;
  /// Throws UserError if a setting has no value that the selector can use.
  std::function<void(const Settings&)> validate = [](const Settings&) {};

  std::unique_ptr<Selector> operator()(Context& ctx, const Settings& settings,
                                       const SelectorRank& rank) const {
    return make(ctx, settings, rank);
  }
};
Registry<SelectorEntry>& selectors();
/// The selectors that others are compared with: the k largest magnitudes, and k random entries.
extern const char* const kTopk;
extern const char* const kRandk;

}  // namespace tw
