// Exchange: sums the contributions of all ranks and leaves the same sum on each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/cost_model.h"
#include "engine/core/registry.h"
#include "engine/core/rng.h"
#include "engine/core/shape.h"
#include "sparsify/selector.h"

namespace tw {

/// Status exchanged together with the gradient. Before the exchange it is that of this rank,
/// afterwards that of all ranks.
struct Control {
  bool stop = false;            ///< in: this rank received a stop signal; out: any rank did
  size_t nonfinite = SIZE_MAX;  ///< index of a NaN or infinity in the slice, SIZE_MAX if none
  float nonfinite_value = 0;    ///< the value there
  int nonfinite_rank = -1;      ///< out: the lowest rank that reported one, -1 if none

  /// Records what `found` has of a part of the slice at `offset`, unless something is recorded.
  void record(const SelectInfo& found, size_t offset = 0);
};

/// A Control as it is sent, of one rank or merged from several.
struct ControlWord {
  uint64_t nonfinite = UINT64_MAX;
  float nonfinite_value = 0;
  uint32_t stop : 1 = 0;
  uint32_t reporter : 31 = 0;  ///< 1 + the rank that found it; 0: the sender
};
ControlWord pack(const Control& control);
/// Merges the word that `rank` sent. The order does not matter.
void merge(Control& control, int rank, const ControlWord& word);

/// Entries that a rank contributes to its messages (elements, if it sends a dense vector), from
/// which claimed_bytes computes the bytes of all ranks.
struct Traffic {
  uint64_t entries = 0;
  uint64_t bytes = 0;  ///< their encoded bytes
  Traffic& operator+=(const Traffic& other) {
    entries += other.entries;
    bytes += other.bytes;
    return *this;
  }
};

/// The vectors of one step on this rank: the whole flat vector or one bucket of it, d elements.
struct ExchangeStep {
  /// d: contribution in (dense exchanges; of one that compresses, u = g + e), sum out
  std::span<float> gradient;
  std::span<float> gradient_control;  ///< the same memory and one more float; see StatusSlot
  std::span<float> residual;          ///< d; receives pruned entries and rounding errors
  SparseVector* mine = nullptr;       ///< the selected entries (sparse exchanges)
  size_t k = 0;                       ///< entries asked for, the same on all ranks
  uint64_t step = 0;                  ///< number of the exchange: of the step, without local steps
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Called before the selection. The hierarchical exchange sums step.gradient over each node here,
  /// and scalecom adds it to the residual of a rank that does not select; both report a NaN or
  /// infinity.
  virtual void prepare(Context&, Communicator&, const ExchangeStep&, Control&) {}
  /// After prepare: whether this rank selects entries in this step; if not, step.mine is empty.
  virtual bool selects(const Communicator&, const ExchangeStep&) const { return true; }
  /// After prepare: the least magnitude this rank should select; 0: the selector decides.
  virtual float threshold() const { return 0; }
  /// Leaves the sum over ranks in step.gradient, bit-identical on all ranks (with updates_at_root:
  /// on rank 0), and merges the control of all ranks. If some rank reported a NaN or infinity, the
  /// sum must not be used.
  virtual void run(Context& ctx, Communicator& comm, const ExchangeStep& step,
                   Control& control) = 0;
  /// Broadcasts rank 0's parameters. Called only for exchanges with updates_at_root.
  virtual void publish(Context&, Communicator&, std::span<float>) {}
  /// State other than the residual that the next step depends on; checkpoints store it.
  virtual std::span<std::byte> state() { return {}; }
  /// Whether the state is the same on all ranks and does not depend on their number.
  virtual bool common_state() const { return false; }
  /// How many of `ranks` ranks' gradients `rank` selects from; 0: it selects nothing.
  virtual int selects_for(int /*rank*/, int /*ranks*/) const { return 1; }
  /// Elements that a dense exchange sums over the ranks in a step of d elements, without status.
  virtual size_t summed_elements(size_t d) const { return d; }
  /// Exchanges at the start of a run in which it sums the whole vector, as the dense exchange; its
  /// bytes and seconds are those that follow.
  virtual uint64_t dense_exchanges() const { return 0; }
  /// Bytes of the state and working memory that grow with d, other than that of a dense sum.
  virtual size_t buffer_bytes(size_t) const { return 0; }
  /// How many of `ranks` ranks contribute to the entries of wire_bytes.
  virtual int contributors(int ranks) const { return ranks; }
  /// Total bytes that all ranks send in one step of d elements. `entries`: total entries selected,
  /// assumed to be equally many per contributor and without common indices.
  virtual uint64_t wire_bytes(int ranks, size_t d, size_t entries) const = 0;
  /// The same for a finished step, from `load` summed over the ranks: exact for any selection.
  virtual uint64_t claimed_bytes(int ranks, size_t d, const Traffic& load) const {
    return wire_bytes(ranks, d, load.entries);
  }
  /// Seconds of run() and publish() by the cost model, with k entries a rank and the same indices
  /// on all ranks: their sum has k entries, too. NaN where a library's collective has no model.
  virtual double seconds(const LinkCost& link, int ranks, size_t d, size_t k) const = 0;
  /// Seconds inside nodes, over links of their own, which seconds() lacks; NaN as there.
  virtual double seconds_inside(const LinkCost&, int /*ranks*/, size_t /*d*/) const { return 0; }
  /// Whether seconds() depends on the collective of dense sums that the settings name.
  virtual bool sums_densely() const { return false; }
  /// The entries and bytes of this rank's messages in the last run. A message that other ranks
  /// forward counts once for each send, at the rank that encoded it.
  const Traffic& load() const { return load_; }

 protected:
  Traffic load_;
};

/// A tensor in the vector of an exchange.
struct TensorSlice {
  size_t offset = 0;  ///< in the vector
  Shape shape{};      ///< as stored
};
/// What an exchange is made for; most exchanges do not depend on it.
struct ExchangePlan {
  size_t offset = 0;                   ///< of the vector in the model
  std::vector<TensorSlice> tensors{};  ///< ascending; elements of none are a vector
  uint64_t seed = 1;                   ///< of random draws, the same on all ranks
  bool error_feedback = true;          ///< the next step adds what the residual receives
  std::vector<HostId> machines{};      ///< of each rank; empty: unknown, only costs are asked for

  /// Without error feedback: numbers for rounding that no other message of this reducer has.
  std::optional<RoundingDraws> draws(uint64_t exchange, int from, int to) const {
    if (error_feedback) return {};
    // buckets begin at different elements of the model
    return RoundingDraws{Philox(seed + (static_cast<uint64_t>(offset) << 32), Purpose::rounding,
                                static_cast<uint32_t>(exchange)),
                         static_cast<uint64_t>(from) << 32 | static_cast<uint32_t>(to)};
  }
};
using ExchangeFactory =
    std::function<std::unique_ptr<Exchange>(const Settings&, const ExchangePlan&)>;

/// What is registered under an exchange's name.
struct ExchangeEntry {
  ExchangeFactory make{};
  bool dense = false;  ///< sums whole gradients and takes no selector
  /// Dense, but sends less than the gradient: u = g + e is its contribution, and it leaves in the
  /// residual what the sum lacks of it.
  bool compresses = false;
  /// Only one rank selects in a step; the others form u = g + e in prepare. Excludes momentum
  /// correction, which a rank applies when it selects.
  bool one_rank_selects = false;
  /// Works only with a selector that selects the same indices on all ranks.
  Trait<bool> needs_shared_indices = false;
  /// Gives elements that are 0 on all ranks a sum that is not 0, so that no tensor can be frozen.
  Trait<bool> moves_zeros = false;
  /// Keeps the largest entries of the whole vector, which excludes densities of its tensors.
  Trait<bool> one_threshold = false;
  /// Adds up exactly what the ranks send: where rounding is lost, or entries are pruned, EF21's
  /// common sum would depart from the ranks' estimates.
  bool adds_what_is_sent = false;
  /// Only rank 0 has the sum after run: it updates its parameters and publishes them.
  bool updates_at_root = false;
  /// First sums densely inside nodes of kNodeSetting ranks, over links of their own:
  /// Exchange::seconds() is without that.
  bool forms_nodes = false;
  /// The exchange in its place where all ranks select the same indices, unless the user chose one.
  std::string with_shared_indices{};
  /// Throws UserError if a setting names something that is not registered.
  std::function<void(const Settings&)> validate = [](const Settings&) {};

  std::unique_ptr<Exchange> operator()(const Settings& settings,
                                       const ExchangePlan& plan = {}) const {
    return make(settings, plan);
  }
};
Registry<ExchangeEntry>& exchanges();
/// `allreduce`, which sums whole vectors: those of dense SGD, and small tensors.
const Registry<ExchangeEntry>::Entry& dense_exchange();

// Settings that others than their exchange read or set; each is defined where it is declared.
extern const char* const kSumCollective;  ///< collective of all dense sums
extern const char* const kSumValues;      ///< type of the values in their messages
extern const char* const kNodeSetting;    ///< ranks of a node

/// The factory of an exchange with a constructor from settings and plan, from the settings, or
/// without arguments.
template <class T>
std::unique_ptr<Exchange> make_exchange(const Settings& settings, const ExchangePlan& plan) {
  if constexpr (std::is_constructible_v<T, const Settings&, const ExchangePlan&>)
    return std::make_unique<T>(settings, plan);
  else if constexpr (std::is_constructible_v<T, const Settings&>)
    return std::make_unique<T>(settings);
  else
    return std::make_unique<T>();
}

/// A group of settings that belong to no single entry has no value, only a name (the prefix of the
/// keys), a help and the settings.
struct SettingGroup {};
Registry<SettingGroup>& setting_groups();

}  // namespace tw
