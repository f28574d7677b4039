// Counts the bytes that kernels read and write in device memory. There are no caches.
#pragma once

#include <cstdint>

namespace tw::emulator {

/// Since the start of the process.
uint64_t bytes_accessed();

}  // namespace tw::emulator
