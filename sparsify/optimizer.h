// Optimizer: turns the gradients in the arena into an update of the parameters, together with the
// other ranks. SyncSgd exchanges in every step, LocalSgd after several steps.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/plan/arena.h"
#include "sparsify/sparsifier.h"

namespace tw {

/// What changes from step to step.
struct StepInput {
  uint64_t step = 0;
  double lr = 0.1;
  double density = 1.0;
  bool warmup = false;  ///< the density is that of a warm-up epoch
  bool stop = false;    ///< this rank received a stop signal
  bool last = false;    ///< last of an epoch or of the run: ends a round of local steps
  uint64_t covers = 1;  ///< steps whose change the gradient holds, up to and with `step`
  /// Number of the exchange, by which exchanges take turns; without local steps that of the step.
  std::optional<uint64_t> exchange{};
};

/// Cost and result of one step on this rank.
struct StepReport {
  double sec_select = 0, sec_exchange = 0, sec_update = 0;
  double sec_wait = 0;  ///< part of sec_exchange: wait for the last rank; see barrier_comm
  uint64_t bytes_sent = 0;
  size_t nnz = 0;     ///< entries this rank sent; dense: elements it summed, d or those of factors
  size_t k = 0;       ///< entries asked for; the same as nnz for dense
  bool stop = false;  ///< some rank received a stop signal: all stop after this step
};

/// State of a part of an optimizer, in host memory.
struct NamedState {
  std::string name;  ///< unique
  std::span<std::byte> bytes;
  std::string part;     ///< whose it is, such as `exchange powersgd`; empty: the optimizer's own
  bool common = false;  ///< the same on all ranks when an update is finished
};

/// What a vector holds.
enum class Holds : uint8_t {
  owed,        ///< changes that an update adds: the mean over the ranks of what they select from
  momentum,    ///< that of this rank's updates, or of all ranks' common ones
  parameters,  ///< the same on all ranks between two rounds of local steps
};

/// A vector of d floats that the next step depends on; empty if there is none.
struct NamedVector {
  std::string name;  ///< unique
  HostFloats values;
  Holds holds = Holds::owed;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Updates the parameters from the gradients in the arena. If a gradient is not finite, the next
  /// exchange throws CollectiveFault on every rank.
  StepReport step(const StepInput& input) {
    begin(input);
    return finish();
  }

  // The same in three calls, for use around backward: begin before it, gradient_ready for each
  // parameter, finish after it.
  virtual void begin(const StepInput& input) = 0;
  virtual void gradient_ready(const Parameter& parameter) = 0;
  virtual StepReport finish() = 0;

  /// Whether a selector chooses what is sent.
  virtual bool selects() const = 0;
  /// What this rank has not sent yet; empty if the exchange sends everything.
  virtual std::span<float> residual() = 0;
  /// Momentum after the mean, the same on all ranks; empty if there is none.
  virtual std::span<float> momentum() = 0;

  /// Whether the parameters are now the same on all ranks.
  virtual bool same_on_all_ranks() const { return true; }

  // State for checkpoints. The vectors come in a fixed order.
  /// The vectors that are the same on all ranks.
  virtual std::vector<NamedVector> common_vectors() = 0;
  /// The vectors of this rank.
  virtual std::vector<NamedVector> own_vectors() = 0;
  /// The state of this rank's parts, where there is any.
  virtual std::vector<NamedState> states() = 0;

  // A run may continue the vectors of another number of ranks, or of other parts. The mean over the
  // ranks of residuals and of momentum before the selection stays the same: every rank gets that
  // mean, and adopt_mean_residual() is called.
  /// Whether this rank has a residual from which it will never select.
  virtual bool has_unreachable_residual() const = 0;
  /// Turns the mean over the ranks, which every rank holds, into the residual of this rank: 0 if it
  /// selects nothing, a multiple of the mean if others select nothing. The residual of tensors that
  /// are exchanged whole is applied in the next update, and momentum before the selection becomes
  /// one after the mean.
  virtual void adopt_mean_residual() = 0;
};

/// SyncSgd, or LocalSgd if the configuration has local steps.
std::unique_ptr<Optimizer> make_optimizer(Context& ctx, Communicator& comm, ParameterArena& arena,
                                          const SgdConfig& config, const Settings& settings);

}  // namespace tw
