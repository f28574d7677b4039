// main of gtest with the GPU as the device under test.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "apps/common/launch.h"
#include "engine/core/error.h"
#include "tests/support/device.h"
#include "tests/support/programs/run_tests.h"

extern "C" [[gnu::weak]] void tw_emulated();  // defined in the emulator only

namespace tw::test {

Device device() { return Device::cuda; }
bool emulated() { return tw_emulated != nullptr; }
void wait_for_device() {
  const cudaError_t status = cudaDeviceSynchronize();
  check<Fault>(status == cudaSuccess, "[test] {}", cudaGetErrorString(status));
}

}  // namespace tw::test

int main(int argc, char** argv) {
  tw::set_gpu_connections();
  testing::InitGoogleTest(&argc, argv);
  const std::string missing = tw::what_is_missing(tw::Device::cuda);
  if (!missing.empty() && !testing::GTEST_FLAG(list_tests)) {
    fmt::print("[  SKIPPED ] all tests, because there is no usable GPU: {}\n", missing);
    return tw::test::kAllSkipped;
  }
  return tw::test::run_tests();
}
