// `analyze select`: runs a selector on a vector from a file and reports the residual.
#pragma once

#include "apps/common/subcommand.h"

namespace tw {

Subcommand analyze_select();

}  // namespace tw
