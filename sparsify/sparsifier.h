// Sparsifier: what a named synchronous optimizer is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "engine/core/context.h"
#include "engine/core/registry.h"

namespace tw {

/// Which slice of the flat vector one selection is made from.
enum class Scope : uint8_t {
  model,  ///< all of it
  layer,  ///< each tensor on its own
};

/// A named algorithm is nothing but its parts.
struct Sparsifier {
  std::string selector{};  ///< registered name; empty for dense
  std::string exchange{};  ///< registered name
  /// Momentum before the selection (momentum correction and factor masking; Lin et al. 2018,
  /// section 3) instead of after the mean.
  bool momentum_before = false;
  Scope scope = Scope::model;  ///< unless the user asks for another
  /// In layer scope, tensors of one dimension (batch norm, biases) travel whole, with momentum
  /// after the mean.
  bool small_tensors_dense = false;
};
Registry<Sparsifier>& sparsifiers();

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
  std::optional<bool> momentum_before{};  ///< momentum correction
  size_t bucket_bytes = size_t{1} << 20;  ///< layer scope: neighbouring tensors travel together
  bool overlap = false;                   ///< exchanges run while backward goes on
  /// Ranks of this one meet before they exchange, so that waiting can be told from exchanging; not
  /// with overlap.
  Communicator* meeting = nullptr;
  uint64_t seed = 1;
};

/// The named algorithm with the parts that the configuration exchanges. UserError on unknown names
/// and when its parts do not fit together.
Sparsifier resolve_sparsifier(Context& ctx, const SgdConfig& config, const Settings& settings);

}  // namespace tw
