// Sparsifier: the parts of a named synchronous optimizer. Read this file first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "engine/core/context.h"
#include "engine/core/registry.h"

namespace tw {

/// The vector that one selection is made from.
enum class Scope : uint8_t {
  model,  ///< the whole flat vector
  layer,  ///< each tensor by itself
};

/// Whether `advise` recommends a sparsifier.
enum class Advice : uint8_t {
  never,        ///< it is there for comparison, or its time is known in part only
  if_measured,  ///< where its accuracy was measured
  first,        ///< also elsewhere, and before others that are as fast
};

/// A named sparsifier is a combination of these parts.
struct Sparsifier {
  std::string selector{};  ///< registered name; empty: none
  std::string exchange{};  ///< registered name
  /// Momentum before the selection instead of after the mean; see momentum_correction.h.
  bool momentum_before = false;
  Scope scope = Scope::model;  ///< default; the user may choose another
  /// In layer scope, tensors of one dimension (batch norm, biases) are exchanged densely, with
  /// momentum after the mean.
  bool small_tensors_dense = false;
  Advice advice = Advice::if_measured;
};
Registry<Sparsifier>& sparsifiers();
/// Synchronous SGD on the whole gradient, the default; exchanges/allreduce.cpp.
extern const char* const kDense;
/// Whether it keeps a residual: it selects entries, or its exchange compresses the gradient.
bool keeps_residual(const Sparsifier& sparsifier);

/// The settings of all selectors, exchanges, sparsifiers, groups and collectives, at their
/// defaults.
Settings default_settings();

struct SgdConfig {
  std::string sparsifier = kDense;
  double momentum = 0.9;
  double weight_decay = 1e-4;
  bool nesterov = false;
  bool error_feedback = true;
  double residual_decay = 1;  ///< beta in u = g + beta e
  bool ef21 = false;          ///< EF21 in place of error feedback; see sync_sgd.h
  std::string density_of{};   ///< densities of tensors, in layer scope; see tensor_density.h
  // these replace parts of the named sparsifier; empty: no replacement
  std::string selector{}, exchange{};
  std::optional<Scope> scope{};
  std::optional<bool> momentum_before{};  ///< momentum correction
  size_t bucket_bytes = size_t{1} << 20;  ///< layer scope: bytes of tensors exchanged together
  bool overlap = false;                   ///< exchanges run during backward
  /// If set, a barrier on it precedes each exchange, so that the time spent waiting for other ranks
  /// is reported separately (StepReport::sec_wait). Not with overlap.
  Communicator* barrier_comm = nullptr;
  uint64_t seed = 1;
  // LocalSgd; see local_sgd.h. momentum, nesterov and weight_decay are then those of a local step.
  int64_t local_steps = 0;    ///< H, the most local steps before an exchange; 0: none
  double outer_lr = 1;        ///< rate at which the mean of the differences is applied
  double outer_momentum = 0;  ///< Nesterov momentum of that mean
};

/// The named sparsifier with the parts that the configuration replaces. A selector with shared
/// indices gets the exchange "shared" in place of "allgather". UserError on unknown names and on
/// parts that do not fit together.
Sparsifier resolve_sparsifier(const SgdConfig& config, const Settings& settings);

}  // namespace tw
