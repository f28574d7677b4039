// `bench data`: speed of the JPEG pipeline, compared with a plain libjpeg loop.
#pragma once

#include "apps/common/subcommand.h"

namespace tw {

Subcommand bench_data();

}  // namespace tw
