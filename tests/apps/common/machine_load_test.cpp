// What other programs take of a machine.
#include "apps/common/machine_load.h"

#include "comm/transports.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

TEST(MachineLoad, CountsOtherProgramsAndNotItsOwn) {
  const auto self = make_self_communicator();
  // it runs on after the shell that starts it has ended, so it is no child of this process
  run_command("timeout 2 sh -c 'while :; do :; done' >/dev/null 2>&1 & echo started");
  const MachineLoad load;
  // its own work, in CPU time, so that a busy machine does not shorten it
  volatile double sum = 0;
  const std::clock_t until = std::clock() + CLOCKS_PER_SEC / 2;
  while (std::clock() < until) sum = sum + 1;
  const double others = load.cores_of_others(*self);
  const auto cores = static_cast<double>(std::thread::hardware_concurrency());
  EXPECT_GT(others, 0.1);
  EXPECT_LT(others, cores - 0.01);  // all that ran, less what this process took
  // idle cores are not taken from anybody
  EXPECT_LT(load.cores_taken(*self, 0), 0.01);
  EXPECT_NEAR(load.cores_taken(*self, static_cast<int>(cores)), others, 0.2);
}

}  // namespace
}  // namespace tw::test
