// What holds the ranks of a topology back.
#include "apps/advise/brakes.h"

#include "engine/core/stopwatch.h"
#include "tests/apps/advise/example.h"

namespace tw::test {
namespace {

TEST(Brakes, DrawTheStepsOfManyRanksOnce) {
  Topology topology{.usual = {.latency = 1e-3, .bits_per_second = 1e9}, .slow_by_step = 0.1};
  const Stopwatch watch;
  const double slowness = network_costs(topology, {3000}).at(3000).slowness;
  const double first = watch.total();
  EXPECT_EQ(network_costs(topology, {3000}).at(3000).slowness, slowness);
  EXPECT_LT(watch.total() - first, first / 2);
  topology.slow_by_step = 0.2;
  EXPECT_GT(network_costs(topology, {3000}).at(3000).slowness, slowness);
}

}  // namespace
}  // namespace tw::test
