// Collectives in host memory, called without a Context.

#include <omp.h>

#include "tests/support/ranks/collectives.h"
#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

TEST(HostCollectives, NeedNoContext) {
  for (const int ranks : kRankCounts)
    run_ranks(ranks, [](Context&, Communicator& comm) {
      barrier(comm);
      int number = comm.rank() + 5;
      broadcast(comm, 0, std::as_writable_bytes(std::span(&number, 1)));
      EXPECT_EQ(number, 5);
      const std::vector<int> all = gather(comm, comm.rank());
      for (int rank = 0; rank < comm.size(); ++rank) EXPECT_EQ(all[rank], rank);
      std::vector<float> data = whole_numbers(comm.rank(), 1000);
      allreduce(comm, data);
      EXPECT_EQ(wrong_sums(data, comm.size()), 0u);
      GatheredBlocks blocks;
      allgather(comm, std::as_bytes(std::span(&number, 1)), sizeof number, blocks);
      EXPECT_EQ(blocks[comm.size() - 1].size(), sizeof number);
    });
}

TEST(HostCollectives, GiveTheBitsOfTheRing) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    std::vector<float> data = rough_numbers(comm.rank(), 1003), ring = data, scratch(1003);
    allreduce(comm, data);
    allreduces().find("ring").value({})(ctx, comm, ring, scratch);
    EXPECT_EQ(std::memcmp(data.data(), ring.data(), 1003 * sizeof(float)), 0);
  });
}

TEST(HostCollectives, KeepTheThreadsOpenMpWidth) {
  run_ranks(2, [](Context&, Communicator& comm) {
    const int before = omp_get_max_threads();
    omp_set_num_threads(3);
    barrier(comm);
    EXPECT_EQ(omp_get_max_threads(), 3);
    omp_set_num_threads(before);
  });
}

}  // namespace
}  // namespace tw
