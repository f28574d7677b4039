// The subcommands of `analyze`.
#pragma once

#include "apps/common/options.h"

namespace tw {

/// `analyze select`: runs a selector on a vector from a file and reports the residual.
Subcommand analyze_select();
/// `analyze theory`: the residual of Top-k and Rand-k relative to the vector, in closed form and
/// measured.
Subcommand analyze_theory();

/// `analyze compressors`: every sparsifier on recorded gradients of all ranks.
Subcommand analyze_compressors();

}  // namespace tw
