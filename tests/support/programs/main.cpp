#include <gtest/gtest.h>

#include "tests/support/device.h"
#include "tests/support/programs/run_tests.h"

namespace tw::test {

Device device() { return Device::cpu; }
bool emulated() { return false; }
void wait_for_device() {}

}  // namespace tw::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return tw::test::run_tests();
}
