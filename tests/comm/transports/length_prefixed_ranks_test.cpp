// Messages of unknown length over a transport that needs the length on both sides.

#include <thread>

#include "comm/collectives/collectives.h"
#include "comm/transports/length_prefixed.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks/collectives.h"
#include "tests/support/ranks/message_pattern.h"
#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

/// A transport that fails when the two sides expect different lengths.
class ExactTransport : public LengthPrefixedCommunicator {
 public:
  explicit ExactTransport(Communicator& lengths) : LengthPrefixedCommunicator(lengths) {
    set_timeout(lengths.timeout());
  }
  const char* transport() const override { return "exact"; }

  int moves = 0;

 protected:
  void move(Context& ctx, int to, ConstBytes out, int from, Bytes in) override {
    ++moves;
    const size_t received =
        inner_.exchange(ctx, out.empty() ? -1 : to, out, in.empty() ? -1 : from, in);
    EXPECT_EQ(received, in.size());
  }
};

constexpr size_t kLong = LengthPrefixedCommunicator::kCarried;

TEST(LengthPrefixed, MessagesOfAnySizeArriveAroundARing) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& plain) {
      if (plain.size() == 1) return;
      ExactTransport comm(plain);
      constexpr size_t sizes[] = {0, 1, kLong - 1, kLong, kLong + 1, 300000, 8};
      swap_around(ctx, comm, sizes);
    });
}

TEST(LengthPrefixed, ShortHostMessagesTravelWithTheirLength) {
  run_ranks(2, [](Context& ctx, Communicator& plain) {
    ExactTransport comm(plain);
    const int other = 1 - comm.rank();
    const uint64_t messages = plain.messages_sent();
    std::vector<std::byte> in(kLong + 1);
    EXPECT_EQ(comm.exchange(ctx, other, pattern(kLong, comm.rank()), other, in), kLong);
    barrier(ctx, comm);
    EXPECT_EQ(comm.moves, 0);
    EXPECT_EQ(plain.messages_sent() - messages, 2u);
    EXPECT_EQ(comm.exchange(ctx, other, pattern(kLong + 1, comm.rank()), other, in), kLong + 1);
    EXPECT_EQ(comm.moves, 1);
    EXPECT_EQ(plain.messages_sent() - messages, 4u);
    // counts the caller's messages, not those of the bootstrap
    EXPECT_EQ(comm.messages_sent(), 3u);
    EXPECT_EQ(comm.bytes_sent(), 2 * kLong + 1);
  });
}

TEST(LengthPrefixed, MessageTooLongForTheReceiverIsAFault) {
  if (started_by_mpi()) GTEST_SKIP() << "ends the run";
  for (size_t room : {size_t{0}, size_t{99}, kLong}) {
    const std::string text = test::error_text<Fault>([&] {
      run_on_threads(2, [&](Communicator& plain) {
        Context ctx;
        ExactTransport comm(plain);
        std::vector<std::byte> data(room + 1);
        if (comm.rank() == 0)
          comm.send(ctx, 1, data);
        else
          comm.receive(ctx, 0, Bytes(data).first(room));
      });
    });
    EXPECT_NE(text.find(fmt::format("a message of {} bytes does not fit in the {} bytes", room + 1,
                                    room)),
              std::string::npos)
        << text;
  }
}

TEST(LengthPrefixed, CollectivesGiveTheRightSums) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& plain) {
      ExactTransport comm(plain);
      for (const auto& [name, entry] : allreduces().entries()) {
        if (!runs_on(comm, name)) continue;
        const Allreduce allreduce = entry.value(known_link());
        for (size_t n : kLengths) {
          std::vector<float> data = whole_numbers(comm.rank(), n), scratch(n);
          allreduce(ctx, comm, data, scratch);
          EXPECT_EQ(wrong_sums(data, comm.size()), 0u) << name << ", length " << n;
        }
      }
      GatheredBlocks blocks;
      const auto mine = pattern(static_cast<size_t>(comm.rank()) * 3000, comm.rank());
      allgather(ctx, comm, mine, 1000, blocks);
      for (int rank = 0; rank < comm.size(); ++rank) {
        const auto expected = pattern(static_cast<size_t>(rank) * 3000, rank);
        EXPECT_TRUE(std::ranges::equal(blocks[rank], expected)) << "of rank " << rank;
      }
    });
}

TEST(LengthPrefixed, TimeoutNamesTheMissingRank) {
  if (started_by_mpi()) GTEST_SKIP() << "ends the run";
  const std::string text = test::error_text<TimeoutError>([] {
    run_on_threads(2, [](Communicator& plain) {
      Context ctx;
      plain.set_timeout(0.1);
      ExactTransport comm(plain);
      std::vector<float> data(10000), scratch(10000);
      if (comm.rank() == 0) allreduces().find("ring").value({})(ctx, comm, data, scratch);
      if (comm.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    });
  });
  EXPECT_EQ(text, "[ring] rank 0 has waited 0.1 s for rank 1");
}

}  // namespace
}  // namespace tw
