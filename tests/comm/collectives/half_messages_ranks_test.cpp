// Every dense allreduce with messages of 16-bit values. The name of a test ends with that of the
// collective.

#include "comm/collectives/half_messages.h"
#include "tests/support/ranks/collectives.h"
#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

constexpr ValueFormat kHalves[] = {ValueFormat::fp16, ValueFormat::bf16};

std::vector<std::string> own_allreduces() {
  std::vector<std::string> names = allreduces().names();
  std::erase(names, "vendor");
  return names;
}

class HalfMessages : public testing::TestWithParam<std::string> {};

TEST_P(HalfMessages, HalveTheBytesAndGiveTheSameBitsOnAllRanks) {
  const auto& entry = allreduces().find(GetParam());
  for (int ranks : kRankCounts)
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      for (const ValueFormat format : kHalves)
        for (size_t n : kLengths) {
          // lengths of blocks follow the bytes, so the block is given
          Settings settings = known_link();
          settings.set("linear_pipeline.block", "1000");
          const auto whole = entry.value(settings);
          const auto half = with_messages_in(format, entry.value(settings));
          std::vector<float> exact = rough_numbers(comm.rank(), n), scratch(n);
          for (float& x : exact) x = std::remainder(x, 1000.0f);  // in the range of fp16
          std::vector<float> data = exact;
          const MessageCounter in_f32(comm);
          whole(ctx, comm, exact, scratch);
          const auto plain = in_f32.sums(ctx, comm);
          const MessageCounter in_half(comm);
          half(ctx, comm, data, scratch);
          const auto halved = in_half.sums(ctx, comm);
          EXPECT_EQ(2 * halved.bytes, plain.bytes) << "length " << n;
          EXPECT_EQ(halved.messages, plain.messages) << "length " << n;

          std::vector<float> root = data;
          broadcast(ctx, comm, 0, std::as_writable_bytes(std::span(root)));
          EXPECT_TRUE(n == 0 || std::memcmp(root.data(), data.data(), n * 4) == 0) << n;
          // each of P roundings is off by at most half a unit of the largest partial sum
          const float unit = format == ValueFormat::fp16 ? 0x1p-11f : 0x1p-8f;
          size_t wrong = 0;
          for (size_t i = 0; i < n && comm.size() > 1; ++i)
            wrong += !(std::abs(data[i] - exact[i]) <=
                       unit * static_cast<float>(comm.size() * comm.size()) * 500 + 1e-6f);
          EXPECT_EQ(wrong, 0u) << name(format) << " length " << n;
          // small integers and their sums are exact in both formats
          std::vector<float> small(n, static_cast<float>(comm.rank() % 3));
          half(ctx, comm, small, scratch);
          float sum = 0;
          for (int rank = 0; rank < comm.size(); ++rank) sum += static_cast<float>(rank % 3);
          EXPECT_EQ(std::ranges::count(small, sum), static_cast<ptrdiff_t>(n));
        }
    });
}

TEST_P(HalfMessages, F32IsTheCollectiveItself) {
  const auto& entry = allreduces().find(GetParam());
  run_ranks(3, [&](Context& ctx, Communicator& comm) {
    std::vector<float> data = rough_numbers(comm.rank(), 1000), again = data, scratch(1000);
    entry.value(known_link())(ctx, comm, data, scratch);
    with_messages_in(ValueFormat::f32, entry.value(known_link()))(ctx, comm, again, scratch);
    EXPECT_EQ(std::memcmp(data.data(), again.data(), data.size() * 4), 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Registered, HalfMessages, testing::ValuesIn(own_allreduces()),
                         [](const auto& test) { return test.param; });

TEST(LinearPipelineInHalfMessages, MeasuresTheLinkWithWholeFloats) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    const auto& entry = allreduces().find("linear_pipeline");
    const auto half = with_messages_in(ValueFormat::bf16, entry.value(collective_settings()));
    std::vector<float> data(100'000, 1.0f), scratch(data.size());
    half(ctx, comm, data, scratch);
    EXPECT_EQ(std::ranges::count(data, 3.0f), 100'000);
  });
}

}  // namespace
}  // namespace tw
