// Allgather of blocks of any sizes: contents, bytes sent, memory reused.

#include "comm/collectives/collectives.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

using SizeOf = size_t (*)(int rank);

struct Case {
  const char* name;
  SizeOf size_of;
  size_t expected;
};

constexpr Case kCases[] = {
    {"all empty", [](int) -> size_t { return 0; }, 0},
    {"all empty, some expected", [](int) -> size_t { return 0; }, 100},
    {"one byte", [](int) -> size_t { return 1; }, 1},
    {"equal, as expected", [](int) -> size_t { return 1000; }, 1000},
    {"equal, nothing expected", [](int) -> size_t { return 1000; }, 0},
    {"a little more than expected", [](int) -> size_t { return 1001; }, 1000},
    {"uneven around what is expected",
     [](int rank) -> size_t { return 700 + 37 * ((rank * 5) % 17); }, 1000},
    {"only rank 0", [](int rank) -> size_t { return rank == 0 ? 5000 : 0; }, 100},
    {"only odd ranks, far too much", [](int rank) -> size_t { return rank % 2 * 100003; }, 1000},
    {"wildly uneven", [](int rank) -> size_t { return size_t{1} << (rank % 5 * 4); }, 64},
};

std::byte byte_at(int rank, size_t i) {
  return static_cast<std::byte>(rank * 41 + i * 3 + i / 256);
}

std::vector<std::byte> block_of(int rank, size_t bytes) {
  std::vector<std::byte> block(bytes);
  for (size_t i = 0; i < bytes; ++i) block[i] = byte_at(rank, i);
  return block;
}

/// The number of second messages by the definition: the rounds in which a sender's blocks exceed
/// the limit.
uint64_t overflows(int ranks, const Case& c) {
  uint64_t count = 0;
  for (int held = 1; held < ranks; held *= 2) {
    const int sent = std::min(held, ranks - held);
    for (int rank = 0; rank < ranks; ++rank) {
      size_t bytes = 0;
      for (int i = 0; i < sent; ++i) bytes += c.size_of((rank + i) % ranks);
      count += bytes > sent * c.expected;
    }
  }
  return count;
}

TEST(Allgather, AllRanksGetEveryBlockWithTheDocumentedBytes) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      GatheredBlocks blocks;  // reused for all cases: old contents must not matter
      uint64_t rounds = 0;
      while ((1 << rounds) < comm.size()) ++rounds;
      for (const Case& c : kCases) {
        SCOPED_TRACE(c.name);
        const auto mine = block_of(comm.rank(), c.size_of(comm.rank()));
        const MessageCounter traffic(comm);
        allgather(ctx, comm, mine, c.expected, blocks);
        const auto sums = traffic.sums(ctx, comm);

        EXPECT_EQ(blocks.size(), comm.size());
        uint64_t payload = 0;
        for (int rank = 0; rank < comm.size(); ++rank) {
          const auto expected = block_of(rank, c.size_of(rank));
          EXPECT_TRUE(std::ranges::equal(blocks[rank], expected)) << "block of rank " << rank;
          payload += expected.size();
        }
        const uint64_t others = comm.size() - 1;
        EXPECT_EQ(sums.bytes, others * (payload + 8 * comm.size()));
        EXPECT_EQ(sums.messages, rounds * comm.size() + overflows(comm.size(), c));
      }
    });
}

TEST(Allgather, ReusesItsMemoryBetweenCalls) {
  run_ranks(4, [](Context& ctx, Communicator& comm) {
    GatheredBlocks blocks;
    const auto gather = [&](size_t bytes) {
      allgather(ctx, comm, block_of(comm.rank(), bytes), 1000, blocks);
      return blocks[comm.rank()].data();
    };
    const auto* first = gather(1000);
    for (size_t bytes : {0, 10, 999, 1000}) EXPECT_EQ(gather(bytes), first);
    // blocks of twice the expected size make the memory grow once
    const auto* grown = gather(2000);
    EXPECT_EQ(gather(2000), grown);
  });
}

TEST(Allgather, ABlockAboveTheLimitIsAFault) {
  if (started_by_mpi()) GTEST_SKIP() << "ends the run";
  const std::string text = test::error_text<Fault>([] {
    run_on_threads(3, [](Communicator& comm) {
      GatheredBlocks blocks;
      allgather(comm, block_of(1, comm.rank() == 1 ? 11 : 10), 10, blocks, 10);
    });
  });
  EXPECT_EQ(text, "[allgather] the block of rank 1 has 11 bytes; at most 10");
}

TEST(Allgather, ABlockOfAnotherSizeIsAFault) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    GatheredBlocks blocks;
    allgather(ctx, comm, block_of(comm.rank(), 4), 4, blocks);
    EXPECT_EQ(blocks.exactly(1, 4).size(), 4u);
    EXPECT_EQ(test::error_text<Fault>([&] { blocks.exactly(1, 5); }),
              "[allgather] rank 1 sent 4 bytes; expected 5");
  });
}

TEST(Allgather, BlocksOfFloatsCanBeReadAsFloats) {
  for (int ranks : {3, 4})
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      GatheredBlocks blocks;
      allgather(ctx, comm, block_of(comm.rank(), 4 * (comm.rank() + 1)), 4, blocks);
      for (int rank = 0; rank < comm.size(); ++rank)
        EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks[rank].data()) % alignof(float), 0u);
    });
}

}  // namespace
}  // namespace tw
