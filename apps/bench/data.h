// `bench data`: speed of the JPEG pipeline beside a bare decoding loop.
#pragma once

#include "apps/common/subcommand.h"

namespace tw {

Subcommand bench_data();

}  // namespace tw
