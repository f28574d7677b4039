// The predicted seconds of `bench comm` follow the settings of the messages.
#include "apps/bench/comm_cases.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sparsify/sparsifier.h"

namespace tw::test {
namespace {

constexpr double kElements = 1e6, kEntries = 1e4;
constexpr LinkCost kLink{.alpha = 1e-4, .beta = 1e-8};

/// Predicted seconds of an exchange of four ranks.
template <class... Assignments>
double seconds_of_exchange(const std::string& exchange, Assignments... assignments) {
  Settings settings = default_settings();
  (settings.set_assignment(assignments), ...);
  for (const CommCase& one : sparse_cases(settings, kEntries / kElements))
    if (one.algorithm == exchange) return one.cost(kLink, 4, kElements);
  throw std::logic_error("no case of " + exchange);
}

TEST(CommCases, PredictTheBytesOfTheEncoding) {
  // two rounds of messages and three blocks of 8 or 6 bytes an entry
  const auto allgather = [](double bytes) {
    return 2 * kLink.alpha + 3 * kEntries * bytes / 4 * kLink.beta;
  };
  EXPECT_NEAR(seconds_of_exchange("allgather"), allgather(8), 1e-9);
  EXPECT_NEAR(seconds_of_exchange("allgather", "wire.values=bf16"), allgather(6), 1e-6);
  EXPECT_NEAR(seconds_of_exchange("allgather", "wire.values=int4"), allgather(4.53125), 1e-6);
}

TEST(CommCases, PredictTheSumOfTheSettings) {
  // the indices down a tree, then a ring of values of 4 or 2 bytes
  const auto scalecom = [](double bytes) {
    return 2 * (kLink.alpha + kEntries * kLink.beta) + 6 * kLink.alpha +
           6.0 / 4 * kEntries * bytes / 4 * kLink.beta;
  };
  EXPECT_NEAR(seconds_of_exchange("scalecom"), scalecom(4), 1e-9);
  EXPECT_NEAR(seconds_of_exchange("scalecom", "allreduce.values=bf16"), scalecom(2), 1e-9);
  EXPECT_TRUE(std::isnan(seconds_of_exchange("scalecom", "allreduce.collective=vendor")));
}

}  // namespace
}  // namespace tw::test
