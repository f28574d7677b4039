// `analyze select`: runs a selector on a vector from a file and reports what it leaves behind.
#pragma once

#include "apps/common/subcommand.h"

namespace tw {

Subcommand analyze_select();

}  // namespace tw
