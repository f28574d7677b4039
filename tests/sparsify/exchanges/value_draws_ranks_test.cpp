// Sparse values of few bits without error feedback: rounded by draws, so that the mean of sums is
// the sum, in each exchange that rounds.

#include <gtest/gtest.h>

#include <cmath>

#include "comm/collectives/collectives.h"
#include "sparsify/exchange.h"
#include "tests/support/ranks/ranks.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw {
namespace {

constexpr size_t kLength = 192;

/// 4 at even indices, and numbers of 2 to 4 between them: all are one to L times the scale.
float value(int rank, size_t i) {
  const Philox philox(7, Purpose::test, static_cast<uint32_t>(rank));
  return i % 2 == 0 ? 4 : 2 + 2 * uniform(philox(i)[0]);
}

class ValueDraws : public testing::TestWithParam<std::string> {
 protected:
  struct Result {
    std::vector<float> sum, lost;  ///< over the ranks; by rounding, on this rank
    bool operator==(const Result&) const = default;
  };
  static Result rounded(Context& ctx, Communicator& comm, const std::string& values, uint64_t seed,
                        const auto& value_of, bool error_feedback = false, uint64_t number = 0) {
    Settings settings = default_settings();
    settings.set("wire.values", values);
    settings.set("wire.block", "64");
    settings.set(kNodeSetting, "1");
    settings.set("hierarchical.exchange", "gtopk");
    const auto exchange = exchanges()
                              .find(GetParam())
                              .value(settings, {.seed = seed, .error_feedback = error_feedback});
    std::vector<float> gradient(kLength + 1), residual(kLength);
    SparseVector mine;
    mine.reserve(kLength);
    for (uint32_t i = 0; i < kLength; ++i) mine.push(i, value_of(comm.rank(), i));
    Control control;
    const ExchangeStep step{.gradient = std::span(gradient).first(kLength),
                            .gradient_control = gradient,
                            .residual = residual,
                            .mine = &mine,
                            .k = kLength,
                            .step = number};
    exchange->prepare(ctx, comm, step, control);
    exchange->run(ctx, comm, step, control);
    gradient.resize(kLength);
    return {gradient, residual};
  }
};

TEST_P(ValueDraws, TheMeanOfSumsIsTheSum) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    for (const auto& [values, levels] : {std::pair("int8", 128), {"int4", 8}, {"int2", 2}}) {
      std::vector<double> means(kLength);
      constexpr int kSums = 400;
      for (uint64_t seed = 1; seed <= kSums; ++seed) {
        const std::vector<float> drawn = rounded(ctx, comm, values, seed, value).sum;
        for (size_t i = 0; i < kLength; ++i) means[i] += drawn[i] / kSums;
      }
      // scales of 4, 8 and 12 over the levels: three ranks, then sums of two and of three are
      // rounded, each with a variance of at most a quarter of the scale's square
      const double deviation = 4.0 / levels * std::sqrt((3 + 4 + 9) / 4.0);
      for (size_t i = 0; i < kLength; ++i) {
        const double exact = double{value(0, i)} + value(1, i) + value(2, i);
        EXPECT_NEAR(means[i], exact, 5 * deviation / std::sqrt(kSums)) << values << " " << i;
      }
    }
  });
}

TEST_P(ValueDraws, DifferByRankSeedAndExchange) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    const auto equal = [](int, size_t i) { return i % 2 == 0 ? 4.0f : 3.0f; };  // on all ranks
    const auto drawn = rounded(ctx, comm, "int2", 1, equal);
    EXPECT_EQ(rounded(ctx, comm, "int2", 1, equal), drawn);
    EXPECT_NE(rounded(ctx, comm, "int2", 2, equal).sum, drawn.sum);
    // the 32nd exchange of oktopk is as the first
    EXPECT_NE(rounded(ctx, comm, "int2", 1, equal, false, 32).sum, drawn.sum);
    // of entries that rank 2 sums, if an exchange divides them
    std::vector<float> of_rank_1(drawn.lost.end() - 32, drawn.lost.end());
    broadcast(ctx, comm, 1, std::as_writable_bytes(std::span(of_rank_1)));
    const std::span<const float> mine(drawn.lost.end() - 32, drawn.lost.end());
    EXPECT_EQ(std::ranges::equal(of_rank_1, mine), comm.rank() == 1);
    EXPECT_EQ(rounded(ctx, comm, "int2", 2, equal, true),
              rounded(ctx, comm, "int2", 1, equal, true));
  });
}

INSTANTIATE_TEST_SUITE_P(Rounding, ValueDraws,
                         testing::Values("allgather", "exact", "gtopk", "hierarchical", "oktopk"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tw
