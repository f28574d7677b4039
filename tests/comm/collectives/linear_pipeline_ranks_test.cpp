// Linear pipelining: block sizes, given, measured and wrong.

#include "tests/support/collectives.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks.h"

namespace tw {
namespace {

constexpr size_t kLength = 1003;

Settings block_of(const std::string& block) {
  Settings settings = known_link();
  settings.set("lp.block", block);
  return settings;
}

// x_0 + (x_1 + (... + x_{P-1})), whatever the blocks
TEST(Lp, AddsAlongTheChainWhateverTheBlockSize) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      std::vector<float> expected = rough_numbers(comm.size() - 1, kLength);
      for (int rank = comm.size() - 2; rank >= 0; --rank) {
        const std::vector<float> values = rough_numbers(rank, kLength);
        for (size_t i = 0; i < kLength; ++i) expected[i] = values[i] + expected[i];
      }
      for (const char* block : {"1", "7", "334", "1002", "1003", "5000", "1e15", "auto"}) {
        std::vector<float> data = rough_numbers(comm.rank(), kLength), scratch(kLength);
        allreduces().find("lp").value(block_of(block))(ctx, comm, data, scratch);
        EXPECT_EQ(std::memcmp(data.data(), expected.data(), kLength * 4), 0) << "block " << block;

        data = rough_numbers(comm.rank(), kLength);
        reduces().find("lp").value(block_of(block))(ctx, comm, 0, data, scratch);
        if (comm.rank() == 0) {
          EXPECT_EQ(std::memcmp(data.data(), expected.data(), kLength * 4), 0) << "block " << block;
        }
      }
    });
}

TEST(Lp, MessagesFollowTheBlockSize) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      const uint64_t links = comm.size() - 1;
      for (const auto& [block, blocks] : {std::pair{"1", 1003}, {"500", 3}, {"1003", 1}}) {
        std::vector<float> data(kLength), scratch(kLength);
        const MessageCounter both(comm);
        allreduces().find("lp").value(block_of(block))(ctx, comm, data, scratch);
        EXPECT_EQ(both.sums(ctx, comm).messages, 2 * links * blocks);
        const MessageCounter up(comm);
        reduces().find("lp").value(block_of(block))(ctx, comm, 0, data, scratch);
        EXPECT_EQ(up.sums(ctx, comm).messages, links * blocks);
        const MessageCounter down(comm);
        broadcasts().find("lp").value(block_of(block))(ctx, comm, 0,
                                                       std::as_writable_bytes(std::span(data)));
        EXPECT_EQ(down.sums(ctx, comm).messages, links * blocks);
      }
    });
}

TEST(Lp, TheWireIsMeasuredOnceAndOnlyWhenItMatters) {
  for (int ranks : {2, 5})
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      std::vector<float> data(kLength), scratch(kLength);
      const Allreduce lp = allreduces().find("lp").value(collective_settings());
      const auto bytes = [&] {
        const MessageCounter traffic(comm);
        lp(ctx, comm, data, scratch);
        return traffic.sums(ctx, comm).bytes;
      };
      const uint64_t first = bytes(), second = bytes();
      EXPECT_EQ(second, 2 * (comm.size() - 1) * 4 * kLength);
      EXPECT_GT(first, second);
    });
}

TEST(Lp, AWrongSettingIsNamed) {
  for (const auto& [key, value] : {std::pair{"lp.block", "0"},
                                   {"lp.block", "0.5"},
                                   {"lp.block", "-3"},
                                   {"lp.block", "big"},
                                   {"lp.alpha", "nan"},
                                   {"lp.beta", "1ms"}}) {
    Settings settings = collective_settings();
    settings.set(key, value);
    const std::string expected = std::string(key) + " is " + value;
    for (const std::string& text :
         {test::error_text<UserError>([&] { broadcasts().find("lp").value(settings); }),
          test::error_text<UserError>([&] { reduces().find("lp").value(settings); }),
          test::error_text<UserError>([&] { allreduces().find("lp").value(settings); })})
      EXPECT_NE(text.find(expected), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tw
