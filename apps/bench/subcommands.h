// The subcommands of `bench` that need no options of each other; step.h has `bench step`.
#pragma once

#include "apps/common/options.h"
#include "comm/communicator.h"

namespace tw {

/// `bench comm`: times collectives and sparse exchanges on a transport or an emulated link, on the
/// ranks of `world` or on threads.
Subcommand bench_comm(Communicator& world);
/// `bench data`: speed of the JPEG pipeline, compared with a plain libjpeg loop.
Subcommand bench_data();
/// `bench select`: the cost of one selection with error feedback, by every selector.
Subcommand bench_select();

}  // namespace tw
