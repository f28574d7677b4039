// What is known of a step of SyncSgd before it runs: memory, bytes sent, settings in use.
#pragma once

#include "sparsify/buckets.h"

namespace tw {

/// Bytes of momentum, residual and exchange buffers on one rank; with local steps also of the
/// anchor and of the momentum of these steps.
size_t optimizer_bytes(const Sparsifier& sparsifier, const SgdConfig& config,
                       const Settings& settings, const ParameterArena& arena);

/// The elements that a rank sums with the others in one step of a dense sparsifier: d, or those of
/// the factors of the gradient.
size_t summed_elements(const Sparsifier& sparsifier, const SgdConfig& config,
                       const Settings& settings, const ParameterArena& arena);

/// How many entries a rank sends at this density when it is asked for k.
Volume volume_of(const Sparsifier& sparsifier, const Settings& settings, double density);

/// Bytes that all ranks together send in one step with an exchange, if every rank that selects
/// finds the k entries it is asked for. A selector may send fewer or more; see Volume.
uint64_t estimated_bytes_sent(const Sparsifier& sparsifier, const SgdConfig& config,
                              const Settings& settings, const ParameterArena& arena, int ranks,
                              double density);

/// Reads the settings that the optimizer of `config` will read, without its memory; for
/// Settings::unread().
void read_settings(Context& ctx, const SgdConfig& config, const Settings& settings,
                   const ParameterArena& arena);

}  // namespace tw
