// The device under test. A test file that includes this (or a header beside it that does) is linked
// twice: into test_<room>, where the device is the CPU, and, in builds with CUDA, into
// test_<room>_cuda, whose main skips every test, saying why, on a machine without a GPU.
#pragma once

#include "engine/core/context.h"

namespace tw::test {

Device device();
/// Whether a CPU plays the GPU (tests/emulator): what takes it long may be left out.
bool emulated();
/// Returns when everything queued on the device, by any context, is done.
void wait_for_device();

}  // namespace tw::test
