// One op, one body per device.
#include "engine/core/dispatch.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace tw::test {
namespace {

constinit Bodies<int(std::unique_ptr<int>, int&)> triple_bodies{"triple"};

int triple_cpu(std::unique_ptr<int> value, int& calls) {
  ++calls;
  return 3 * *value;
}

const bool registered = triple_bodies.add(Device::cpu, triple_cpu);

TEST(Bodies, CallTheBodyOfTheDeviceWithWhatWasGiven) {
  int calls = 0;
  EXPECT_TRUE(registered);
  EXPECT_EQ(triple_bodies(Device::cpu, std::make_unique<int>(14), calls), 42);
  EXPECT_EQ(calls, 1);
}

TEST(Bodies, AMissingBodyNamesOpAndDevice) {
  int calls = 0;
  EXPECT_TRUE(triple_bodies.has(Device::cpu));
  EXPECT_FALSE(triple_bodies.has(Device::cuda));
  try {
    triple_bodies(Device::cuda, nullptr, calls);
    FAIL() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("[triple] this build has no cuda body"))
        << error.what();
  }
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace tw::test
