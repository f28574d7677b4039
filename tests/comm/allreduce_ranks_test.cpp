// Every registered dense allreduce: right sums, equal bits, bytes as claimed.

#include <cmath>
#include <random>
#include <vector>

#include "comm/collectives.h"
#include "tests/support/ranks.h"

namespace tw {
namespace {

constexpr size_t kLengths[] = {0, 1, 2, 4, 15, 1000, 4097, 300000};

TEST(Allreduce, SumsIntegersExactly) {
  for (const auto& [name, entry] : allreduces().entries())
    for (int ranks : kRankCounts)
      run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
        for (size_t n : kLengths) {
          std::vector<float> data(n), scratch(n);
          const auto value = [](int rank, size_t i) {
            return static_cast<float>(static_cast<int>((i * 7 + rank * 13) % 101) - 50);
          };
          for (size_t i = 0; i < n; ++i) data[i] = value(comm.rank(), i);
          entry.factory(collective_settings())(ctx, comm, data, scratch);
          size_t wrong = 0;
          for (size_t i = 0; i < n; ++i) {
            float sum = 0;
            for (int rank = 0; rank < comm.size(); ++rank) sum += value(rank, i);
            wrong += data[i] != sum;
          }
          EXPECT_EQ(wrong, 0u) << entry.name << ", length " << n;
        }
      });
}

TEST(Allreduce, AllRanksEndWithTheSameBits) {
  for (const auto& [name, entry] : allreduces().entries())
    for (int ranks : kRankCounts)
      run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
        std::mt19937 random(17 + comm.rank());
        std::normal_distribution<float> normal;
        std::vector<float> data(4097), scratch(4097);
        for (float& x : data) x = normal(random) * std::exp(5 * normal(random));
        entry.factory(collective_settings())(ctx, comm, data, scratch);
        std::vector<float> root = data;
        broadcast(ctx, comm, 0, std::as_writable_bytes(std::span(root)));
        EXPECT_EQ(std::memcmp(root.data(), data.data(), data.size() * 4), 0) << entry.name;
      });
}

TEST(Ring, BytesAndMessagesAsClaimed) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      const uint64_t others = comm.size() - 1;
      for (size_t n : kLengths) {
        std::vector<float> data(n), scratch(n);
        const Traffic traffic(comm);
        allreduces().find("ring").factory({})(ctx, comm, data, scratch);
        const auto sums = traffic.sums(ctx, comm);
        EXPECT_EQ(sums.bytes, 2 * others * 4 * n) << "length " << n;
        EXPECT_EQ(sums.messages, 2 * others * comm.size()) << "length " << n;
      }
    });
}

// the order of additions depends on P and n alone, so threads and processes give the same bits
TEST(Ring, AddsEachChunkAlongTheRing) {
  constexpr size_t n = 1003;
  const auto values_of = [](int rank) {
    std::mt19937 random(rank);
    std::normal_distribution<float> normal;
    std::vector<float> values(n);
    for (float& x : values) x = normal(random);
    return values;
  };
  for (int ranks : kRankCounts)
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      const auto size = static_cast<size_t>(comm.size());
      std::vector<float> data = values_of(comm.rank()), scratch(n), expected(n);
      allreduces().find("ring").factory({})(ctx, comm, data, scratch);
      for (size_t hop = 0; hop < size; ++hop)
        for (size_t chunk = 0; chunk < size; ++chunk) {
          const auto values = values_of(static_cast<int>((chunk + hop) % size));
          for (size_t i = n * chunk / size; i < n * (chunk + 1) / size; ++i)
            expected[i] = hop == 0 ? values[i] : expected[i] + values[i];
        }
      EXPECT_EQ(std::memcmp(data.data(), expected.data(), n * sizeof(float)), 0);
    });
}

TEST(Ring, ShortScratchIsAFault) {
  run_ranks(1, [](Context& ctx, Communicator& comm) {
    std::vector<float> data(10), scratch(9);
    EXPECT_THROW(allreduces().find("ring").factory({})(ctx, comm, data, scratch), Fault);
  });
}

TEST(Allreduces, UnknownNameListsTheKnown) {
  try {
    allreduces().find("rind");
    FAIL() << "found";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("ring"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tw
