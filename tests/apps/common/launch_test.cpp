// The environment that a program sets before CUDA starts.
#include "apps/common/launch.h"

#include <gtest/gtest.h>

namespace tw {
namespace {

constexpr const char* kConnections = "CUDA_DEVICE_MAX_CONNECTIONS";

std::string connections_inside_a_program() {
  std::string found;
  EXPECT_EQ(run_program([&](Communicator&) {
              const char* value = std::getenv(kConnections);
              found = value == nullptr ? "" : value;
              return 0;
            }),
            0);
  return found;
}

TEST(Launch, AProgramHas32ConnectionsToTheGpu) {
  unsetenv(kConnections);
  EXPECT_EQ(connections_inside_a_program(), "32");
}

TEST(Launch, TheNumberOfConnectionsInTheEnvironmentIsKept) {
  setenv(kConnections, "4", 1);
  EXPECT_EQ(connections_inside_a_program(), "4");
  unsetenv(kConnections);
}

}  // namespace
}  // namespace tw
