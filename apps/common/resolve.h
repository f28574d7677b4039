// Resolves `auto` and 0 for this machine.
#pragma once

#include <cstdint>
#include <string>

#include "engine/core/dtype.h"

namespace tw {

/// `device`: cpu, cuda or auto. auto: the GPU when there is one and this build can use it.
Device resolve_device(const std::string& device);

/// Type of the activations for `f32`, `tf32` (f32 in memory), `bf16` or `auto`; auto: bf16 where
/// `device` has it in hardware.
DType resolve_precision(const std::string& precision, Device device);

/// CPU threads of each of `ranks` ranks: `threads` or, for 0, the cores of this machine divided by
/// the ranks on it, of which an MPI launcher tells the number (Launcher::local_ranks).
int resolve_threads(int64_t threads, int ranks);

}  // namespace tw
