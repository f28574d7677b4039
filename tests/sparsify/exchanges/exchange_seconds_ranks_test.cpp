// The seconds of the cost model compared with the sparse exchanges on a simulated clock.

#include "tests/support/exchange_rig.h"
#include "tests/support/ranks.h"
#include "tests/support/simulated.h"

namespace tw {
namespace {

constexpr size_t kLength = size_t{1} << 17, kEntries = size_t{1} << 13;

/// Seconds of the second exchange (Ok-Topk's first is an exact step) of kEntries per rank, evenly
/// spread, with the same indices on all ranks.
double measured(Context& ctx, Communicator& comm, const std::string& sparsifier) {
  Settings settings = default_settings();
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

TEST(SparseCosts, MatchTheSimulatedExchanges) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      const auto d = static_cast<double>(kLength), k = static_cast<double>(kEntries);
      const int p = comm.size();
      const bool power = (p & (p - 1)) == 0;
      for (const auto& [exchange, cost] : sparse_costs()) {
        const double model = cost(kLinkCost, p, d, k);
        const double seconds = measured(ctx, comm, sparsifier_with(exchange));
        // the model ignores headers and, unless P is a power of two, incomplete last rounds
        EXPECT_LE(seconds, 1.02 * model) << exchange;
        EXPECT_GE(seconds, (power ? 0.99 : 0.8) * model) << exchange;
      }
    });
}

}  // namespace
}  // namespace tw
