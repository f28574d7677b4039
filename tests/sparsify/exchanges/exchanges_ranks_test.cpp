// Properties of the exchange of every sparsifier, without the optimizer. A test runs all variants
// of one sparsifier; the name of the test ends with it.

#include <set>

#include "comm/collectives/collectives.h"
#include "tests/support/ranks/exchange_rig.h"
#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

uint64_t claimed(Context& ctx, Communicator& comm, const ExchangeRig& rig) {
  const Traffic mine = rig.exchange->load();
  const Traffic all{sum_over_ranks(ctx, comm, mine.entries), sum_over_ranks(ctx, comm, mine.bytes)};
  return rig.exchange->claimed_bytes(comm.size(), rig.residual.size(), all);
}

/// Vector lengths and gradient kinds, which differ in the entries to send.
const std::vector<size_t> lengths{1, 1000};
const std::vector<GradientKind> kinds{exact_kinds()[0], exact_kinds()[1], exact_kinds()[5]};

/// Sets the link costs, so that no collective measures them first.
Settings unmeasured(Settings settings) {
  settings.set("linear_pipeline.alpha", "1e-6");
  settings.set("linear_pipeline.beta", "1e-9");
  return settings;
}

class Exchanges : public testing::TestWithParam<std::string> {
 protected:
  const std::vector<Variant> variants_ = variants_of(GetParam());
};

TEST(Exchanges, BelongToASparsifierWhichTheContractTestsRun) {
  std::set<std::string> used{"shared"};  // of sparsifiers whose selectors share the indices
  for (const auto& [name, entry] : sparsifiers().entries()) used.insert(entry.value.exchange);
  for (const std::string& name : exchanges().names())
    EXPECT_TRUE(used.contains(name)) << "no registered sparsifier uses exchange " << name;
}

TEST_P(Exchanges, SendTheClaimedBytes) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [this](Context& ctx, Communicator& comm) {
      for (const Variant& variant : variants_)
        for (size_t d : lengths)
          for (const GradientKind& kind : kinds) {
            ExchangeRig rig(ctx, comm, d, variant.sparsifier, unmeasured(variant.settings));
            for (uint64_t step = 0; step < 3; ++step) {
              rig.set_gradients(kind, step);
              const MessageCounter traffic(comm);
              rig.step(std::max<size_t>(1, d / 20), step);
              const uint64_t counted = traffic.sums(ctx, comm).bytes;
              EXPECT_EQ(counted, claimed(ctx, comm, rig))
                  << variant.name << ", " << kind.name << ", d " << d << ", step " << step;
            }
          }
    });
}

TEST(RootExchange, SendsTheClaimedBytesWithEveryCollective) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const std::string& collective : reduces().names()) {
        if (collective == "vendor") continue;
        Settings settings = unmeasured(default_settings());
        settings.set("root.collective", collective);
        for (size_t d : {1, 3, 1000}) {
          ExchangeRig rig(ctx, comm, d, "bsp", settings);
          rig.set_gradients(kinds[0], 0);
          const MessageCounter traffic(comm);
          rig.step(d, 0);
          const uint64_t counted = traffic.sums(ctx, comm).bytes;
          EXPECT_EQ(counted, claimed(ctx, comm, rig)) << collective << ", d " << d;
        }
      }
    });
}

TEST_P(Exchanges, SendThePredictedBytesForEqualCounts) {
  constexpr size_t d = 16'384, k = 64;
  for (int ranks : kRankCounts)
    run_ranks(ranks, [this](Context& ctx, Communicator& comm) {
      for (const Variant& variant : variants_) {
        // its first step is an exact step
        if (variant.name.find("oktopk") != std::string::npos) continue;
        ExchangeRig rig(ctx, comm, d, variant.sparsifier, unmeasured(variant.settings));
        // each rank has k indices of its own
        for (size_t i = 0; i < k; ++i)
          rig.gradient[i * (d / k) + static_cast<size_t>(comm.rank())] =
              static_cast<float>(1 + (i * 7 + static_cast<size_t>(comm.rank()) * 5) % 64);
        const MessageCounter traffic(comm);
        rig.step(k);
        const double counted = static_cast<double>(traffic.sums(ctx, comm).bytes);
        const uint64_t entries = sum_over_ranks(ctx, comm, rig.selected.count);
        const double predicted =
            static_cast<double>(rig.exchange->wire_bytes(comm.size(), d, entries));
        // even gaps take a different number of bits than random ones
        const bool packed = variant.settings.text("wire.indices") != "plain";
        EXPECT_LE(counted, packed ? 1.01 * predicted : predicted) << variant.name;
        EXPECT_GE(counted, packed ? 0.8 * predicted : predicted) << variant.name;
      }
    });
}

// RedSync sends up to 2k: a second message would cost each round another latency
TEST(Exchanges, SendTwiceKEntriesInTheSameMessages) {
  run_ranks(4, [](Context& ctx, Communicator& comm) {
    constexpr size_t k = 100, d = 1000;
    const auto exchange = exchanges().find("allgather").value(default_settings());
    std::vector<float> gradient(d + 1), residual(d);
    SparseVector mine;
    mine.reserve(2 * k);
    for (uint32_t i = 0; i < 2 * k; ++i) mine.push(2 * i, 1);
    Control control;
    const MessageCounter traffic(comm);
    exchange->run(ctx, comm,
                  {.gradient = std::span(gradient).first(d),
                   .gradient_control = gradient,
                   .residual = residual,
                   .mine = &mine,
                   .k = k},
                  control);
    EXPECT_EQ(traffic.sums(ctx, comm).messages, 2u * 4u);
    EXPECT_EQ(gradient[2], 4);
  });
}

TEST_P(Exchanges, LoseNothingWhenTheDensityChanges) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [this](Context& ctx, Communicator& comm) {
      for (const Variant& variant : variants_) {
        if (!variant.conserves) continue;
        for (size_t d : lengths)
          for (const GradientKind& kind : kinds) {
            ExchangeRig rig(ctx, comm, d, variant.sparsifier, unmeasured(variant.settings));
            for (uint64_t step = 0; step < 5; ++step) {
              rig.set_gradients(kind, step);
              rig.step(std::max<size_t>(1, d / (step == 2 ? 1 : 20)), step);
              const size_t lost = rig.lost();
              if (rig.updates_at_root && comm.rank() > 0) continue;
              EXPECT_EQ(lost, 0u) << variant.name << ", " << kind.name << ", d " << d << ", step "
                                  << step;
            }
          }
      }
    });
}

INSTANTIATE_TEST_SUITE_P(Registered, Exchanges, testing::ValuesIn(sparsifiers().names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tw
