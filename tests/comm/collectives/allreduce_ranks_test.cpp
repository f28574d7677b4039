// Every registered dense allreduce: right sums, equal bits, documented bytes. The name of a test
// ends with that of the collective.

#include <bit>

#include "tests/support/error_text.h"
#include "tests/support/ranks/collectives.h"
#include "tests/support/ranks/ranks.h"

namespace tw::test {  // here Allreduce is the suite, not tw::Allreduce
namespace {

class Allreduce : public testing::TestWithParam<std::string> {};

TEST_P(Allreduce, SumsIntegersExactly) {
  const auto& entry = allreduces().find(GetParam());
  for (int ranks : kRankCounts)
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      if (!runs_on(comm, entry.name)) return;
      const auto allreduce = entry.value(collective_settings());
      for (size_t n : kLengths) {
        std::vector<float> data = whole_numbers(comm.rank(), n), scratch(n);
        allreduce(ctx, comm, data, scratch);
        EXPECT_EQ(wrong_sums(data, comm.size()), 0u) << "length " << n;
      }
    });
}

TEST_P(Allreduce, AllRanksGetTheSameBitsInEveryRun) {
  const auto& entry = allreduces().find(GetParam());
  for (int ranks : kRankCounts)
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      if (!runs_on(comm, entry.name)) return;
      for (size_t n : {size_t{3}, size_t{4097}}) {
        std::vector<float> data = rough_numbers(comm.rank(), n), again = data, scratch(n);
        entry.value(collective_settings())(ctx, comm, data, scratch);
        std::vector<float> root = data;
        broadcast(ctx, comm, 0, std::as_writable_bytes(std::span(root)));
        EXPECT_EQ(std::memcmp(root.data(), data.data(), n * 4), 0);
        entry.value(known_link())(ctx, comm, again, scratch);
        EXPECT_EQ(std::memcmp(again.data(), data.data(), n * 4), 0);
      }
    });
}

TEST_P(Allreduce, SendsTheDocumentedBytesAndMessages) {
  const auto& entry = allreduces().find(GetParam());
  if (entry.name == "vendor") GTEST_SKIP() << "the messages of vendor are the library's own";
  for (int ranks : kRankCounts)
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      const uint64_t size = comm.size(), others = size - 1, rounds = std::bit_width(others);
      Settings settings = known_link();
      settings.set("linear_pipeline.block", "1000");
      const auto allreduce = entry.value(settings);
      for (size_t n : kLengths) {
        const std::map<std::string, uint64_t> messages{
            {"ring", 2 * others * size},
            {"linear_pipeline", 2 * others * ((n + 999) / 1000)},
            {"binomial_tree", 2 * others},
            {"recursive_halving", 2 * rounds * size}};
        std::vector<float> data(n), scratch(n);
        const MessageCounter traffic(comm);
        allreduce(ctx, comm, data, scratch);
        const auto sums = traffic.sums(ctx, comm);
        EXPECT_EQ(sums.bytes, 2 * others * 4 * n) << "length " << n;
        ASSERT_TRUE(messages.contains(entry.name)) << "no claim";
        EXPECT_EQ(sums.messages, messages.at(entry.name)) << "length " << n;
      }
    });
}

TEST_P(Allreduce, ShortScratchIsAFault) {
  const auto& entry = allreduces().find(GetParam());
  if (entry.name == "vendor") GTEST_SKIP() << "vendor needs no scratch";
  run_ranks(1, [&](Context& ctx, Communicator& comm) {
    std::vector<float> data(10), scratch(9);
    EXPECT_THROW(entry.value(collective_settings())(ctx, comm, data, scratch), Fault);
  });
}

INSTANTIATE_TEST_SUITE_P(Registered, Allreduce, testing::ValuesIn(allreduces().names()),
                         [](const auto& test) { return test.param; });

TEST(Allreduce, UnknownNameListsTheKnown) {
  const auto error = test::error_text<UserError>([] { allreduces().find("rind"); });
  EXPECT_NE(error.find("ring"), std::string::npos) << error;
}

// the order of additions depends on P and n alone, so threads and processes give the same bits
TEST(Ring, AddsEachChunkAlongTheRing) {
  constexpr size_t n = 1003;
  for (int ranks : kRankCounts)
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      const auto size = static_cast<size_t>(comm.size());
      std::vector<float> data = rough_numbers(comm.rank(), n), scratch(n), expected(n);
      allreduces().find("ring").value({})(ctx, comm, data, scratch);
      for (size_t hop = 0; hop < size; ++hop)
        for (size_t chunk = 0; chunk < size; ++chunk) {
          const auto values = rough_numbers(static_cast<int>((chunk + hop) % size), n);
          for (size_t i = n * chunk / size; i < n * (chunk + 1) / size; ++i)
            expected[i] = hop == 0 ? values[i] : expected[i] + values[i];
        }
      EXPECT_EQ(std::memcmp(data.data(), expected.data(), n * sizeof(float)), 0);
    });
}

TEST(Vendor, TransportsWithoutALibraryAreAUserError) {
  if (started_by_mpi()) GTEST_SKIP() << "this is its transport";
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    std::vector<float> data(4), scratch(4);
    const auto refuses = [&](const std::function<void()>& call) {
      const auto error = test::error_text<UserError>(call);
      EXPECT_NE(error.find("transport is threads"), std::string::npos) << error;
    };
    const auto bytes = std::as_writable_bytes(std::span(data));
    refuses([&] { allreduces().find("vendor").value({})(ctx, comm, data, scratch); });
    refuses([&] { reduces().find("vendor").value({})(ctx, comm, 0, data, scratch); });
    refuses([&] { broadcasts().find("vendor").value({})(ctx, comm, 0, bytes); });
  });
}

}  // namespace
}  // namespace tw::test
