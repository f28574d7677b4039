// SyncSgd: synchronous data-parallel SGD; selector x exchange x momentum on one flat vector.
//   momentum after:  u = g + e -> select -> exchange -> mean -> weight decay -> momentum -> update
#pragma once

#include <memory>
#include <span>
#include <string>

#include "engine/arena.h"
#include "engine/safetensors.h"
#include "sparsify/exchange.h"
#include "sparsify/selector.h"

namespace tw {

/// Which slice of the flat vector one selection is made from.
enum class Scope : uint8_t {
  model,  ///< all of it
  layer,  ///< each tensor on its own
};

/// A named algorithm is nothing but its parts.
struct Algorithm {
  std::string selector;  ///< registered name; empty for dense
  std::string exchange;  ///< registered name
  /// Momentum before the selection (momentum correction and factor masking, Lin et al. 2018,
  /// section 3) instead of after the mean.
  bool momentum_before = false;
  Scope scope = Scope::model;  ///< unless the user asks for another
  /// Tensors of one dimension (batch norm, biases) travel whole, with momentum after the mean.
  bool small_tensors_dense = false;
};
Registry<Algorithm>& algorithms();

/// The settings of every selector, exchange and algorithm, at their defaults.
Settings default_settings();

struct SgdConfig {
  std::string sparsifier = "dense";
  double momentum = 0.9;
  double weight_decay = 1e-4;
  bool nesterov = false;
  bool error_feedback = true;
  // empty: as the named algorithm has it
  std::string selector{}, exchange{}, scope{};
  size_t bucket_bytes = size_t{4} << 20;  ///< layer scope: neighbouring tensors travel together
  bool overlap = false;                   ///< exchanges run while backward goes on
  uint64_t seed = 1;
};

/// What changes from step to step.
struct StepInput {
  uint64_t step = 0;
  double lr = 0.1;
  double density = 1.0;
  bool stop = false;  ///< this rank received a stop signal
};

/// What one step cost and did on this rank.
struct StepReport {
  double sec_select = 0, sec_exchange = 0, sec_update = 0;
  uint64_t bytes_sent = 0;
  size_t nnz = 0;     ///< entries this rank sent; d for dense
  size_t k = 0;       ///< entries asked for; d for dense
  bool stop = false;  ///< some rank received a stop signal: all stop after this step
};

class SyncSgd {
 public:
  SyncSgd(Context& ctx, Communicator& comm, ParameterArena& arena, const SgdConfig& config,
          const Settings& settings);

  /// Takes the gradients of the arena to the next parameters; all ranks end bit-identical.
  /// Throws Fault, on every rank in the same step, when a gradient is not finite.
  StepReport step(const StepInput& input);

  std::span<float> residual() { return residual_.as<float>(); }
  std::span<float> momentum() { return momentum_.as<float>(); }

  /// Bytes of momentum, residual and exchange buffers (for the plan).
  static size_t memory_bytes(const SgdConfig& config, size_t d);

 private:
  // each returns k
  size_t select(double density, uint64_t step, Control& control);
  size_t check_finite(Control& control);
  void update(double lr);
  [[noreturn]] void report_nonfinite(const Control& control, uint64_t step) const;

  Context& ctx_;
  Communicator& comm_;
  ParameterArena& arena_;
  SgdConfig config_;
  std::unique_ptr<Selector> selector_;  // null for dense
  std::unique_ptr<Exchange> exchange_;
  Buffer residual_, momentum_;
  SparseVector selected_;
  std::vector<DecayRange> decay_ranges_;
};

}  // namespace tw
