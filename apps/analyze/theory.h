// `analyze theory`: the share that Top-k and Rand-k leave behind, in closed form and measured.
#pragma once

#include "apps/common/subcommand.h"

namespace tw {

Subcommand analyze_theory();

}  // namespace tw
