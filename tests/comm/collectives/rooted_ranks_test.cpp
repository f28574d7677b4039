// Every registered broadcast and reduce, from and to every root: contents and documented bytes. The
// name of a test ends with that of the collective.

#include <bit>

#include "tests/support/ranks/collectives.h"
#include "tests/support/ranks/ranks.h"

namespace tw::test {  // here Broadcast and Reduce are suites, not types of tw
namespace {

class Broadcast : public testing::TestWithParam<std::string> {};
class Reduce : public testing::TestWithParam<std::string> {};

std::byte byte_at(size_t i, int root) {
  return static_cast<std::byte>(i * 31 + i / 251 + root * 7);
}

/// Total bytes and messages that all ranks send in one collective.
struct Claim {
  uint64_t messages = 0, bytes = 0;
};

Settings blocks_of_1000() {
  Settings settings = collective_settings();
  settings.set("linear_pipeline.block", "1000");
  return settings;
}

Claim claim_of(const std::string& name, int ranks, size_t bytes) {
  const auto others = static_cast<uint64_t>(ranks - 1), all = others * bytes;
  if (name == "binomial_tree") return {others, all};
  if (name == "linear_pipeline") {
    const uint64_t elements = (bytes + 3) / 4;
    return {others * ((elements + 999) / 1000), all};
  }
  if (name != "recursive_halving") {
    ADD_FAILURE() << "no claim for " << name;
    return {};
  }
  const uint64_t rounds = std::bit_width(others);
  return {others + rounds * static_cast<uint64_t>(ranks), all};
}

/// Bytes on the tree of recursive_halving: the chunks of each subtree travel once, to or from its
/// root.
uint64_t tree_bytes(int ranks, size_t n, size_t size_of_element) {
  uint64_t sum = 0;
  for (int place = 1; place < ranks; ++place) {
    const int end = std::min(ranks, place + (place & -place));
    sum += n * static_cast<size_t>(end) / ranks - n * static_cast<size_t>(place) / ranks;
  }
  return sum * size_of_element;
}

TEST_P(Broadcast, EveryRootReachesAllRanksWithTheDocumentedMessages) {
  const auto& entry = broadcasts().find(GetParam());
  for (int ranks : kRankCounts)
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      if (!runs_on(comm, entry.name)) return;
      const auto run = entry.value(blocks_of_1000());
      for (int root = 0; root < comm.size(); ++root)
        for (size_t bytes : {0, 1, 2, 7, 4097, 200000}) {
          std::vector<std::byte> data(bytes);
          if (comm.rank() == root)
            for (size_t i = 0; i < bytes; ++i) data[i] = byte_at(i, root);
          const MessageCounter traffic(comm);
          run(ctx, comm, root, data);
          const auto sums = traffic.sums(ctx, comm);
          size_t wrong = 0;
          for (size_t i = 0; i < bytes; ++i) wrong += data[i] != byte_at(i, root);
          EXPECT_EQ(wrong, 0u) << "root " << root << ", " << bytes << " bytes";
          if (entry.name == "vendor") continue;
          Claim claim = claim_of(entry.name, comm.size(), bytes);
          if (entry.name == "recursive_halving") claim.bytes += tree_bytes(comm.size(), bytes, 1);
          EXPECT_EQ(sums.messages, claim.messages) << bytes << " bytes";
          EXPECT_EQ(sums.bytes, claim.bytes) << bytes << " bytes";
        }
    });
}

TEST_P(Reduce, SumsAtEveryRootWithTheDocumentedMessages) {
  const auto& entry = reduces().find(GetParam());
  for (int ranks : kRankCounts)
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      if (!runs_on(comm, entry.name)) return;
      const auto run = entry.value(blocks_of_1000());
      for (int root = 0; root < comm.size(); ++root)
        for (size_t n : {0, 1, 2, 15, 4097, 50000}) {
          std::vector<float> data = whole_numbers(comm.rank(), n), scratch(n);
          const MessageCounter traffic(comm);
          run(ctx, comm, root, data, scratch);
          const auto sums = traffic.sums(ctx, comm);
          if (comm.rank() == root) {
            EXPECT_EQ(wrong_sums(data, comm.size()), 0u) << "root " << root << ", length " << n;
          }
          if (entry.name == "vendor") continue;
          Claim claim = claim_of(entry.name, comm.size(), 4 * n);
          if (entry.name == "recursive_halving") claim.bytes += tree_bytes(comm.size(), n, 4);
          EXPECT_EQ(sums.messages, claim.messages) << "length " << n;
          EXPECT_EQ(sums.bytes, claim.bytes) << "length " << n;
        }
    });
}

TEST_P(Reduce, GivesTheSameBitsInEveryRun) {
  constexpr size_t n = 4097;
  const auto& entry = reduces().find(GetParam());
  for (int ranks : {3, 8})
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      if (!runs_on(comm, entry.name)) return;
      std::vector<float> first = rough_numbers(comm.rank(), n), again = first, scratch(n);
      entry.value(collective_settings())(ctx, comm, 1, first, scratch);
      entry.value(known_link())(ctx, comm, 1, again, scratch);
      if (comm.rank() != 1) return;
      EXPECT_EQ(std::memcmp(first.data(), again.data(), n * 4), 0);
    });
}

TEST_P(Reduce, ShortScratchIsAFault) {
  const auto& entry = reduces().find(GetParam());
  if (entry.name == "vendor") GTEST_SKIP() << "vendor needs no scratch";
  run_ranks(1, [&](Context& ctx, Communicator& comm) {
    std::vector<float> data(10), scratch(9);
    EXPECT_THROW(entry.value(collective_settings())(ctx, comm, 0, data, scratch), Fault);
  });
}

INSTANTIATE_TEST_SUITE_P(Registered, Broadcast, testing::ValuesIn(broadcasts().names()),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Registered, Reduce, testing::ValuesIn(reduces().names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tw::test
