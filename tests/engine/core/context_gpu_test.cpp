// How a process waits for its GPU.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "tests/support/device.h"

namespace tw {
namespace {

TEST(ContextOnGpu, RanksThatAreThreadsBlockWhileWaiting) {
  const Context first(test::device()), second(test::device());
  unsigned flags = 0;
  EXPECT_EQ(cudaGetDeviceFlags(&flags), cudaSuccess);
  EXPECT_EQ(flags & cudaDeviceScheduleMask, unsigned{cudaDeviceScheduleBlockingSync});
}

}  // namespace
}  // namespace tw
