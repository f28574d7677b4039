// What other programs take of a machine.
#include "apps/common/machine_load.h"

#include <sched.h>

#include <ctime>

#include "comm/transports.h"
#include "engine/core/stopwatch.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

/// Lets this thread, and programs that it starts, use one core.
class OnOneCore {
 public:
  OnOneCore() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (size_t core = 0; CPU_COUNT(&one) == 0; ++core)
      if (CPU_ISSET(core, &before_)) CPU_SET(core, &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  }
  ~OnOneCore() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

TEST(MachineLoad, CountsOtherProgramsAndNotItsOwn) {
  const auto self = make_self_communicator();
  const OnOneCore pinned;
  // it runs on after the shell that starts it has ended, so it is no child of this process
  run_command("timeout 2 sh -c 'while :; do :; done' >/dev/null 2>&1 & echo started");
  const MachineLoad load;
  const Stopwatch watch;
  // its own work, in CPU time, so that a busy machine does not shorten it
  volatile double sum = 0;
  const std::clock_t begin = std::clock(), until = begin + CLOCKS_PER_SEC / 2;
  while (std::clock() < until) sum = sum + 1;
  const double others = load.cores_taken(*self, 1);
  const double own = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  // the core was always busy, for this process or another
  EXPECT_NEAR(others, 1 - own / watch.total(), 0.1);
  EXPECT_GT(others, 0.2);
  // an idle core is not taken from anybody
  EXPECT_LT(load.cores_taken(*self, 0), 0.01);
}

}  // namespace
}  // namespace tw::test
