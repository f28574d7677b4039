// Messages that MPI or a pinned buffer takes only in blocks.

#include "comm/transports/mpi/communicator.h"
#include "tests/support/ranks/message_pattern.h"
#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

TEST(Mpi, LongMessagesTravelInBlocks) {
  if (!started_by_mpi()) GTEST_SKIP() << "needs mpirun";
  for (const mpi::MpiOptions& options : {mpi::MpiOptions{.block_bytes = 1000},
                                         mpi::MpiOptions{.stage_bytes = 1000, .stage_all = true}})
    run_ranks(4, [&](Context& ctx, Communicator& comm) {
      const auto blocks = mpi::make_communicator(options);
      const int right = (comm.rank() + 1) % 4, left = (comm.rank() + 3) % 4;
      // below, at and above multiples of a block, different on neighbours
      for (size_t bytes : {0, 1, 999, 1000, 1001, 2000, 12345, 100000}) {
        const auto length = [&](int rank) { return bytes * (rank + 1); };
        std::vector<std::byte> in(length(left));
        const auto out = pattern(length(comm.rank()), comm.rank());
        EXPECT_EQ(blocks->exchange(ctx, right, out, left, in), in.size());
        EXPECT_EQ(in, pattern(length(left), left));
      }
      // one way
      const auto out = pattern(5500, 1);
      std::vector<std::byte> in(6000);
      if (comm.rank() == 1) blocks->send(ctx, 2, out);
      if (comm.rank() == 2) {
        EXPECT_EQ(blocks->receive(ctx, 1, in), out.size());
        EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin()));
      }
      EXPECT_EQ(blocks->messages_sent(), comm.rank() == 1 ? 9u : 8u);
    });
}

}  // namespace
}  // namespace tw
