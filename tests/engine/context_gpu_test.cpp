// How a process waits for its GPU.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "tests/support/device.h"

namespace tw {
namespace {

bool waits_asleep() {
  unsigned flags = 0;
  EXPECT_EQ(cudaGetDeviceFlags(&flags), cudaSuccess);
  return (flags & cudaDeviceScheduleMask) == cudaDeviceScheduleBlockingSync;
}

TEST(ContextOnGpu, RanksThatAreThreadsWaitAsleep) {
  {
    const Context alone(test::device());
    EXPECT_FALSE(waits_asleep());
    const Context second(test::device());
    EXPECT_TRUE(waits_asleep());
  }
  const Context alone_again(test::device());
  EXPECT_FALSE(waits_asleep());
}

}  // namespace
}  // namespace tw
