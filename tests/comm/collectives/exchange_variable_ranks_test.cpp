// Messages whose length the receiver does not know.

#include "comm/collectives/exchange_variable.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks/message_pattern.h"
#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

/// One length and a block of that many bytes.
std::vector<std::byte> message(size_t bytes, int seed) {
  std::vector<std::byte> out(sizeof(uint64_t));
  const uint64_t length = bytes;
  std::memcpy(out.data(), &length, sizeof length);
  const auto block = pattern(bytes, seed);
  out.insert(out.end(), block.begin(), block.end());
  return out;
}

constexpr size_t kLimit = 100;
constexpr size_t kSizes[] = {0, 1, kLimit - 1, kLimit, kLimit + 1, 5000, 3};

TEST(ExchangeVariable, AnyLengthArrivesAndOnlyLongOnesTakeASecondMessage) {
  for (const int ranks : {2, 3, 5})
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      const int size = comm.size(), rank = comm.rank();
      const int right = (rank + 1) % size, left = (rank + size - 1) % size;
      std::vector<std::byte> in;
      for (int round = 0; round < static_cast<int>(std::size(kSizes)); ++round) {
        const auto bytes = [&](int r) {
          return kSizes[static_cast<size_t>(r + round) % std::size(kSizes)];
        };
        const uint64_t sent = comm.messages_sent();
        const size_t received = exchange_variable(
            "test", ctx, comm, right, message(bytes(rank), rank), left, 1, kLimit, 5000, in);
        EXPECT_EQ(received, bytes(left));
        const auto expected = message(bytes(left), left);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), in.begin()));
        EXPECT_EQ(comm.messages_sent() - sent, bytes(rank) > kLimit ? 2u : 1u);
      }
    });
}

TEST(ExchangeVariable, ALengthAboveTheLimitIsAFault) {
  if (started_by_mpi()) GTEST_SKIP() << "ends the run";
  const std::string text = test::error_text<Fault>([] {
    run_on_threads(2, [](Communicator& comm) {
      std::vector<std::byte> in;
      const int other = 1 - comm.rank();
      exchange_variable("test", comm.host(), comm, other, message(50, 0), other, 1, kLimit, 49, in);
    });
  });
  EXPECT_NE(text.find("announces 50 bytes; expected at most 49"), std::string::npos) << text;
}

}  // namespace
}  // namespace tw
