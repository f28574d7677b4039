// Linear pipelining with given, measured and wrong block sizes.

#include "comm/collectives/half_messages.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks/collectives.h"
#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

constexpr size_t kLength = 1003;

Settings block_of(const std::string& block) {
  Settings settings = known_link();
  settings.set("linear_pipeline.block", block);
  return settings;
}

// x_0 + (x_1 + (... + x_{P-1})) for every block size
TEST(LinearPipeline, AddsAlongTheChainForEveryBlockSize) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      std::vector<float> expected = rough_numbers(comm.size() - 1, kLength);
      for (int rank = comm.size() - 2; rank >= 0; --rank) {
        const std::vector<float> values = rough_numbers(rank, kLength);
        for (size_t i = 0; i < kLength; ++i) expected[i] = values[i] + expected[i];
      }
      for (const char* block : {"1", "7", "334", "1002", "1003", "5000", "1e15", "auto"}) {
        std::vector<float> data = rough_numbers(comm.rank(), kLength), scratch(kLength);
        allreduces().find("linear_pipeline").value(block_of(block))(ctx, comm, data, scratch);
        EXPECT_EQ(std::memcmp(data.data(), expected.data(), kLength * 4), 0) << "block " << block;

        data = rough_numbers(comm.rank(), kLength);
        reduces().find("linear_pipeline").value(block_of(block))(ctx, comm, 0, data, scratch);
        if (comm.rank() == 0) {
          EXPECT_EQ(std::memcmp(data.data(), expected.data(), kLength * 4), 0) << "block " << block;
        }
      }
    });
}

TEST(LinearPipeline, SendsOneMessagePerBlockAndLink) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      const uint64_t links = comm.size() - 1;
      for (const auto& [block, blocks] : {std::pair{"1", 1003}, {"500", 3}, {"1003", 1}}) {
        std::vector<float> data(kLength), scratch(kLength);
        const MessageCounter both(comm);
        allreduces().find("linear_pipeline").value(block_of(block))(ctx, comm, data, scratch);
        EXPECT_EQ(both.sums(ctx, comm).messages, 2 * links * blocks);
        const MessageCounter up(comm);
        reduces().find("linear_pipeline").value(block_of(block))(ctx, comm, 0, data, scratch);
        EXPECT_EQ(up.sums(ctx, comm).messages, links * blocks);
        const MessageCounter down(comm);
        broadcasts()
            .find("linear_pipeline")
            .value(block_of(block))(ctx, comm, 0, std::as_writable_bytes(std::span(data)));
        EXPECT_EQ(down.sums(ctx, comm).messages, links * blocks);
      }
    });
}

TEST(LinearPipeline, MeasuresTheLinkAtTheFirstCallOnlyAndCountsNoBytesOfIt) {
  for (int ranks : {2, 5})
    for (const ValueFormat format : {ValueFormat::f32, ValueFormat::bf16})
      run_ranks(ranks, [format](Context& ctx, Communicator& comm) {
        std::vector<float> data(kLength), scratch(kLength);
        const Allreduce lp = with_messages_in(
            format, allreduces().find("linear_pipeline").value(collective_settings()));
        const auto traffic = [&] {
          const MessageCounter counter(comm);
          lp(ctx, comm, data, scratch);
          return counter.sums(ctx, comm);
        };
        const auto first = traffic(), second = traffic();
        EXPECT_EQ(first.bytes, 2 * (comm.size() - 1) * size_of(format) * kLength);
        EXPECT_EQ(second.bytes, first.bytes);
        EXPECT_GT(first.messages, second.messages);
      });
}

TEST(LinearPipeline, AWrongSettingIsNamedInTheError) {
  for (const auto& [key, value] : {std::pair{"linear_pipeline.block", "0"},
                                   {"linear_pipeline.block", "0.5"},
                                   {"linear_pipeline.block", "-3"},
                                   {"linear_pipeline.block", "big"},
                                   {"linear_pipeline.alpha", "nan"},
                                   {"linear_pipeline.beta", "1ms"}}) {
    Settings settings = collective_settings();
    settings.set(key, value);
    const std::string expected = std::string(key) + " is " + value;
    for (const std::string& text :
         {test::error_text<UserError>(
              [&] { broadcasts().find("linear_pipeline").value(settings); }),
          test::error_text<UserError>([&] { reduces().find("linear_pipeline").value(settings); }),
          test::error_text<UserError>(
              [&] { allreduces().find("linear_pipeline").value(settings); })})
      EXPECT_NE(text.find(expected), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tw
