// The GPU of each rank, and ranks that share one.

#include "comm/transports/gpu_topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <string_view>

#include "comm/transports.h"

namespace tw {
namespace {

HostId machine(char letter) {
  HostId id{};
  id.fill(letter);
  return id;
}

GpuLocation location(char where, std::string_view bus) {
  GpuLocation result{.machine = machine(where)};
  std::ranges::copy(bus, result.bus.begin());
  return result;
}

TEST(GpuTopology, RanksOnOneBusAddressOfOneMachineShareAGpu) {
  const std::vector<GpuLocation> apart{location('a', "0000:1b:00.0"), location('a', "0000:1c:00.0"),
                                       location('b', "0000:1b:00.0")};
  EXPECT_FALSE(shared_gpu(apart));
  EXPECT_FALSE(shared_gpu({}));
  EXPECT_FALSE(shared_gpu(std::span(apart).first(1)));

  std::vector<GpuLocation> shared = apart;
  shared.push_back(location('b', "0000:1b:00.0"));
  const auto found = shared_gpu(shared);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first, 2);
  EXPECT_EQ(found->second, 3);
  EXPECT_EQ(shared_gpu_notice(*found, shared, "threads"),
            "nccl: ranks 2 and 3 share the GPU at 0000:1b:00.0, and NCCL wants one for each rank: "
            "messages go over threads instead");
}

TEST(GpuTopology, LocalRanksCountPerMachine) {
  const std::vector<HostId> machines{machine('a'), machine('b'), machine('a'), machine('a'),
                                     machine('b')};
  std::vector<int> local;
  for (int rank = 0; rank < 5; ++rank) local.push_back(local_rank(machines, rank));
  EXPECT_EQ(local, (std::vector<int>{0, 0, 1, 2, 1}));
}

TEST(GpuTopology, ThreadsGetGpusInTurn) {
  std::mutex mutex;
  std::vector<int> gpus(5, -1);
  run_on_threads(5, [&](Communicator& comm) {
    Context ctx;
    const int mine = gpu_in_turn(ctx, comm, 3);
    const auto located = gather_gpus(ctx, comm, fmt::format("0000:{:02x}:00.0", mine));
    const auto shared = shared_gpu(located);
    const std::lock_guard lock(mutex);
    gpus[static_cast<size_t>(comm.rank())] = mine;
    ASSERT_TRUE(shared);
    EXPECT_EQ(shared->first, 0);
    EXPECT_EQ(shared->second, 3);
    EXPECT_STREQ(located[1].bus.data(), "0000:01:00.0");
  });
  EXPECT_EQ(gpus, (std::vector<int>{0, 1, 2, 0, 1}));
}

TEST(GpuTopology, ThisMachineHasAnId) { EXPECT_NE(this_host(), HostId{}); }

}  // namespace
}  // namespace tw
