// The device under test. A file *_device_test.cpp is linked into test_<folder>, where the device is
// the CPU, and in builds with CUDA into test_<folder>_cuda, which skips all tests on a machine
// without a GPU and prints why.
#pragma once

#include "engine/core/context.h"

namespace tw::test {

Device device();
/// Whether the device is the CUDA emulator (tests/emulator); tests may leave out slow parts.
bool emulated();
/// Waits for all work queued on the device, by any context.
void wait_for_device();

}  // namespace tw::test
