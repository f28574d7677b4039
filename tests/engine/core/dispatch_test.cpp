// DispatchTable calls the function of the given device.
#include "engine/core/dispatch.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/error_text.h"

namespace tw::test {
namespace {

constinit DispatchTable<int(std::unique_ptr<int>, int&)> triple_dispatch{"triple"};

int triple_cpu(std::unique_ptr<int> value, int& calls) {
  ++calls;
  return 3 * *value;
}

const bool registered = triple_dispatch.add(Device::cpu, triple_cpu);

TEST(DispatchTable, CallsTheImplementationOfTheDevice) {
  int calls = 0;
  EXPECT_TRUE(registered);
  EXPECT_EQ(triple_dispatch(Device::cpu, std::make_unique<int>(14), calls), 42);
  EXPECT_EQ(calls, 1);
}

TEST(DispatchTable, AMissingImplementationNamesOpAndDevice) {
  int calls = 0;
  EXPECT_TRUE(triple_dispatch.has(Device::cpu));
  EXPECT_FALSE(triple_dispatch.has(Device::cuda));
  const std::string error =
      error_text<UserError>([&] { triple_dispatch(Device::cuda, nullptr, calls); });
  EXPECT_TRUE(error.starts_with("[triple] this build has no cuda implementation")) << error;
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace tw::test
