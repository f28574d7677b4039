// Runs the threads of a block one at a time on one CPU thread, each until it waits for others. The
// next thread is chosen at random, so that tests fail for kernels that depend on the order.
#pragma once

#include <vector_types.h>

#include <array>
#include <cstdint>
#include <functional>

// of the thread that runs
extern thread_local uint3 threadIdx, blockIdx;
extern thread_local dim3 blockDim, gridDim;

namespace tw::emulator {

/// Calls thread() for each thread of each block of a grid. Aborts the process on a deadlock of the
/// threads of a block.
void run_grid(dim3 grid, dim3 block, const std::function<void()>& thread);

/// The same for one block, by its number in the grid.
void run_block(dim3 grid, dim3 block, uint64_t number, const std::function<void()>& thread);

/// Waits for all threads of the block that have not returned. Returns how many passed true.
int barrier(bool counts);

/// Waits for the lanes in `mask` of the calling warp; returns the value of each lane, valid until
/// the next call.
using WarpValues = std::array<uint64_t, 32>;
const WarpValues& exchange(uint32_t mask, uint64_t value);

}  // namespace tw::emulator
