// The seconds of the cost model compared with the sparse exchanges on a simulated clock. The name
// of a test ends with that of the exchange.

#include "tests/support/ranks/exchange_rig.h"
#include "tests/support/ranks/ranks.h"
#include "tests/support/ranks/simulated.h"

namespace tw::test {
namespace {

constexpr size_t kLength = size_t{1} << 17, kEntries = size_t{1} << 13;

/// Hierarchical in nodes of two ranks.
Settings in_pairs() {
  Settings settings = default_settings();
  settings.set("hierarchical.node", "2");
  return settings;
}

/// Seconds of the second exchange (Ok-Topk's first is an exact step) of kEntries per rank, evenly
/// spread, with the same indices on all ranks.
double measured(Context& ctx, Communicator& comm, const std::string& sparsifier) {
  Settings settings = in_pairs();
  if (sparsifier == "randk") settings.set("randk.seed", "shared");
  // with one root, steps on 5 or 7 ranks overlap: leaves start the next while the root still sends
  if (sparsifier == "gtopk") settings.set("gtopk.rotate", "true");
  double before = 0, after = 0;
  const auto steps = [&](uint64_t count) {
    return simulated(ctx, comm, [&](Communicator& link) {
      ExchangeRig rig(ctx, link, kLength, sparsifier, settings);
      for (uint64_t step = 0; step < count; ++step) {
        for (size_t i = 0; i < kEntries; ++i) rig.gradient[i * (kLength / kEntries)] = 1;
        rig.step(kEntries, step);
      }
    });
  };
  before = steps(1);
  after = steps(2);
  return after - before;
}

/// A sparsifier that selects the k largest entries and has this exchange.
std::string sparsifier_with(const std::string& exchange) {
  if (exchange == "shared") return "randk";
  for (const auto& [name, entry] : sparsifiers().entries())
    if (entry.value.exchange == exchange && entry.value.selector.ends_with("topk")) return name;
  ADD_FAILURE() << "no such sparsifier with exchange " << exchange;
  return "dense";
}

class SparseCosts : public testing::TestWithParam<std::string> {
 protected:
  const std::string& exchange_ = GetParam();
  const std::unique_ptr<Exchange> made_ = exchanges().find(exchange_).value(in_pairs());
  double model(int ranks, size_t d, size_t k) const {
    return made_->seconds(kLinkCost, ranks, d, k) + made_->seconds_inside(kLinkCost, ranks, d);
  }
};

TEST_P(SparseCosts, MatchTheSimulatedExchanges) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [this](Context& ctx, Communicator& comm) {
      const int p = comm.size();
      const bool power = (p & (p - 1)) == 0;
      const double model = this->model(p, kLength, kEntries);
      const double seconds = measured(ctx, comm, sparsifier_with(exchange_));
      // the model ignores headers and, unless P is a power of two, incomplete last rounds
      EXPECT_LE(seconds, 1.02 * model);
      EXPECT_GE(seconds, (power ? 0.99 : 0.8) * model);
    });
}

TEST_P(SparseCosts, OneRankTakesNoTime) { EXPECT_EQ(model(1, 1000000, 1000), 0); }

std::vector<std::string> sparse_exchanges() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : exchanges().entries())
    if (!entry.value.dense) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Registered, SparseCosts, testing::ValuesIn(sparse_exchanges()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tw::test
