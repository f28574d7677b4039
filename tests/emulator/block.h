// The threads of a block, one at a time on one thread of the CPU: each runs until it waits for
// others. Which comes next is drawn, so that code that relies on an order is found out.
#pragma once

#include <vector_types.h>

#include <array>
#include <cstdint>
#include <functional>

// where the thread that runs is
extern thread_local uint3 threadIdx, blockIdx;
extern thread_local dim3 blockDim, gridDim;

namespace tw::emulator {

/// Runs thread() for each thread of each block of a grid. Ends the process when the threads of a
/// block wait for each other for ever.
void run_grid(dim3 grid, dim3 block, const std::function<void()>& thread);

/// Waits for the block's threads, those that have returned left out. Returns how many gave true.
int barrier(bool counts);

/// Waits for the lanes of the own warp that `mask` names; returns what each of them gave, until the
/// next call.
using WarpValues = std::array<uint64_t, 32>;
const WarpValues& exchange(uint32_t mask, uint64_t value);

}  // namespace tw::emulator
