// Exchange: turns every rank's contribution into the same sum on every rank.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <variant>

#include "comm/communicator.h"
#include "engine/core/registry.h"
#include "sparsify/selector.h"

namespace tw {

/// What rides along with a step's exchange: each rank's word, and after it everybody's.
struct Control {
  bool stop = false;            ///< in: this rank was told to stop; out: any rank was
  size_t nonfinite = SIZE_MAX;  ///< flat index of a NaN/Inf, SIZE_MAX if none
  float nonfinite_value = 0;    ///< what stands there
  int nonfinite_rank = -1;      ///< out: the lowest rank that reported one, -1 if none
};

/// A Control as it travels: a rank's own, or what several have merged.
struct ControlWord {
  uint64_t nonfinite = UINT64_MAX;
  float nonfinite_value = 0;
  uint32_t stop : 1 = 0;
  uint32_t reporter : 31 = 0;  ///< rank + 1 of who found it; 0: who sends this
};
ControlWord pack(const Control& control);
/// Merges the word that `rank` sent, its own word included. The order does not matter.
void merge(Control& control, int rank, const ControlWord& word);

/// The entries that a step put on the wire, each counted as often as it was sent.
struct Traffic {
  uint64_t entries = 0;
  uint64_t bytes = 0;  ///< what they took as the wire format has them
  Traffic& operator+=(const Traffic& other) {
    entries += other.entries;
    bytes += other.bytes;
    return *this;
  }
};

/// One step's vectors on this rank: the whole flat vector, or one bucket of it.
struct ExchangeStep {
  std::span<float> gradient;          ///< d: dense contribution in (dense exchange), sum out
  std::span<float> gradient_control;  ///< the same memory and one float behind it, to be restored
  std::span<float> residual;          ///< d; an exchange that prunes gives back to it
  SparseVector* mine = nullptr;       ///< the selected entries (sparse exchanges); what the wire
                                      ///< format rounds off goes to the residual
  size_t k = 0;                       ///< entries asked for, the same on all ranks
  uint64_t step = 0;
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  /// True when it sums whole gradients and needs no selector.
  virtual bool dense() const { return false; }
  /// True when it works only with a selector whose indices agree on all ranks.
  virtual bool needs_shared_indices() const { return false; }
  /// Called before the selection; an exchange in levels sums step.gradient over a node here, and
  /// reports there what is not finite in this rank's own.
  /// Returns whether this rank selects; if not, step.mine is empty.
  virtual bool prepare(Context&, Communicator&, const ExchangeStep&, Control&) { return true; }
  /// After prepare: the magnitude from which on this rank should select; 0 if it has no opinion.
  virtual float threshold() const { return 0; }
  /// Leaves the sum over ranks in step.gradient, bit-identical on all of them (unless
  /// updates_at_root), and merges control.
  /// When some rank reported a NaN or infinity, the sum is not to be used.
  virtual void run(Context& ctx, Communicator& comm, const ExchangeStep& step,
                   Control& control) = 0;
  /// True when only rank 0 has the sum after run: it updates its parameters and publishes them.
  virtual bool updates_at_root() const { return false; }
  /// Rank 0's parameters to everyone.
  virtual void publish(Context&, Communicator&, std::span<float>) {}
  /// What this rank's next step depends on besides the residual; a checkpoint keeps it.
  virtual std::span<std::byte> state() { return {}; }
  /// Bytes that all ranks together send in one step, `entries` being what they selected together:
  /// the same number each, and no two at one place.
  virtual uint64_t wire_bytes(int ranks, size_t d, size_t entries) const = 0;
  /// The same for a step whose load is known, summed over the ranks: exact whatever was selected.
  virtual uint64_t claimed_bytes(int ranks, size_t d, const Traffic& load) const {
    return wire_bytes(ranks, d, load.entries);
  }
  /// What this rank sent in the last run.
  const Traffic& load() const { return load_; }

 protected:
  Traffic load_;
};

using ExchangeFactory = std::function<std::unique_ptr<Exchange>(const Settings&)>;
Registry<ExchangeFactory>& exchanges();

/// Settings that several exchanges share, by their prefix.
Registry<std::monostate>& setting_groups();

}  // namespace tw
