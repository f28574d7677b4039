// `bench select`: the cost of one selection with error feedback, by every selector.
#pragma once

#include "apps/common/subcommand.h"

namespace tw {

Subcommand bench_select();

}  // namespace tw
