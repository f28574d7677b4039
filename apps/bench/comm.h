// `bench comm`: times collectives and sparse exchanges on a transport or an emulated link.
#pragma once

#include "apps/common/subcommand.h"
#include "comm/communicator.h"

namespace tw {

/// The subcommand, which runs on the ranks of `world` or on threads.
Subcommand bench_comm(Communicator& world);

}  // namespace tw
