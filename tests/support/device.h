// The device under test. A file *_device_test.cpp is linked into test_<folder>, where the device is
// the CPU, and in builds with CUDA into test_<folder>_cuda, which skips all tests on a machine
// without a GPU and prints why.
#pragma once

#include <vector>

#include "engine/core/context.h"

namespace tw::test {

Device device();
/// Whether the device is the CUDA emulator (tests/emulator); tests may leave out slow parts.
bool emulated();
/// Numbers of threads to test: the given ones on the CPU, one on a GPU, whose kernels use none.
inline std::vector<int> thread_counts(const std::vector<int>& on_cpu) {
  return device() == Device::cpu ? on_cpu : std::vector{1};
}
/// Waits for all work queued on the device, by any context.
void wait_for_device();

}  // namespace tw::test
