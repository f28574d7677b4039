// Emulated cooperative launches. Each block has a CPU thread, and the blocks run in turns: a block
// runs until it waits for others.
#pragma once

#include <vector_types.h>

#include <functional>

namespace tw::emulator {

inline constexpr int kProcessors = 2, kBlocksOfProcessor = 2;

/// Calls thread() for each thread of each block, all blocks together.
void run_cooperative_grid(dim3 grid, dim3 block, const std::function<void()>& thread);

/// Lets a block run that is chosen at random. Aborts the process outside of a cooperative launch,
/// where other blocks may never run.
void give_way();

/// Cooperative launches fail. A test may set it while no other thread uses the device.
bool& refuse_cooperative();

}  // namespace tw::emulator
