// `analyze theory`: the residual of Top-k and Rand-k relative to the vector, in closed form and
// measured.
#pragma once

#include "apps/common/subcommand.h"

namespace tw {

Subcommand analyze_theory();

}  // namespace tw
