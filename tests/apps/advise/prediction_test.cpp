// Predictions, break-even bandwidths and recommendations from the cost model.
#include "apps/advise/prediction.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tw {
namespace {

constexpr LinkCost kSlow{.alpha = 0.436e-3, .beta = 3.6e-8};  // the 1 Gbit/s of Shi et al. 2019
constexpr size_t kLength = 25 * (size_t{1} << 20);

/// Candidates for one vector of ResNet-50's size; a step computes for 0.5 s and selects for 0.01 s.
std::vector<Prediction> example() {
  LocalCosts local{.compute = 0.5};
  for (const auto& [name, entry] : sparsifiers().entries())
    if (keeps_residual(entry.value)) local.step[name].update = 0.01;
  return candidates(ParameterArena{}, kLength, 0.001, local, default_settings());
}

const Prediction& find(const std::vector<Prediction>& all, const std::string& sparsifier,
                       const std::string& collective = "") {
  const auto it = std::ranges::find_if(all, [&](const Prediction& c) {
    return c.sparsifier == sparsifier && c.collective == collective;
  });
  EXPECT_NE(it, all.end()) << sparsifier;
  return *it;
}

TEST(Predictions, CoverEverySparsifierAndCollective) {
  const std::vector<Prediction> all = example();
  for (const auto& [name, entry] : sparsifiers().entries())
    EXPECT_TRUE(std::ranges::any_of(all, [&](const Prediction& c) { return c.sparsifier == name; }))
        << "no cost is known for the exchange " << entry.value.exchange << " of " << name;
  for (const auto& [name, cost] : allreduce_costs()) find(all, "dense", name);
}

TEST(Predictions, IterationIsComputePlusSelectionPlusExchange) {
  const std::vector<Prediction> all = example();
  const Prediction& dense = find(all, "dense", "ring");
  EXPECT_NEAR(dense.seconds(kSlow, 8), 0.5 + 1.658, 1e-3);
  const Prediction& gtopk = find(all, "gtopk");
  EXPECT_NEAR(gtopk.seconds(kSlow, 8), 0.51 + 0.0139, 1e-3);
  EXPECT_NEAR(gtopk.efficiency(kSlow, 8, 0.5), 0.5 / 0.5239, 1e-3);
  EXPECT_EQ(dense.seconds(kSlow, 1), 0.5);
}

TEST(Predictions, ExchangeIncludesTheLocalSum) {
  const std::vector<Prediction> all =
      candidates(ParameterArena{}, kLength, 0.001,
                 {.compute = 0.5, .step = {{"gtopk", {.update = 0.01, .exchange = 0.02}}}},
                 default_settings());
  const Prediction& gtopk = find(all, "gtopk");
  EXPECT_DOUBLE_EQ(gtopk.exchange_seconds(kSlow, 1), 0.02);
  EXPECT_NEAR(gtopk.exchange_seconds(kSlow, 8), 0.02 + 0.0139, 1e-3);
  EXPECT_NEAR(gtopk.seconds(kSlow, 8), 0.5 + 0.01 + 0.02 + 0.0139, 1e-3);
}

TEST(Predictions, DependOnTheSettings) {
  const auto seconds = [](const char* sparsifier, auto... assignments) {
    Settings settings = default_settings();
    (settings.set_assignment(assignments), ...);
    return find(candidates(ParameterArena{}, kLength, 0.001, {}, settings), sparsifier)
        .exchange_seconds({.alpha = 0, .beta = 1e-8}, 8);
  };
  EXPECT_NEAR(seconds("topk", "wire.values=bf16") / seconds("topk"), 6.0 / 8, 1e-3);
  EXPECT_NEAR(seconds("gtopk", "wire.values=bf16") / seconds("gtopk"), 6.0 / 8, 1e-3);
  // a ring allreduce of k values instead of an allgather of 7 k entries of twice the size
  EXPECT_NEAR(seconds("randk", "randk.seed=shared") / seconds("randk"), 2 * 7.0 / 8 / 14, 1e-3);
  // which sends floats in any encoding
  EXPECT_EQ(seconds("randk", "randk.seed=shared", "wire.values=bf16"),
            seconds("randk", "randk.seed=shared"));
  EXPECT_GT(seconds("bsp", "root.collective=mst"), 1.5 * seconds("bsp"));
}

TEST(Predictions, PowerSgdSumsTheFactorsOfEachMatrixTwice) {
  ParameterArena arena;
  arena.add({.name = "conv.weight", .shape = {64, 3, 3, 32}});
  arena.add({.name = "bn.weight", .shape = {64}});
  arena.add({.name = "fc.weight", .shape = {10, 64}});
  const LinkCost link{.alpha = 1e-4, .beta = 1e-8};
  const auto seconds = [&](auto... assignments) {
    Settings settings = default_settings();
    (settings.set_assignment(assignments), ...);
    const auto all = candidates(arena, 0, 0.001, {}, settings);
    EXPECT_FALSE(find(all, "powersgd").dense);
    return find(all, "powersgd").exchange_seconds(link, 8);
  };
  // rank 4: factors of 64 x 4 and 288 x 4, of 10 x 4 and 64 x 4, and the vector
  const auto ring = [&](double n) { return 14 * link.alpha + 14.0 / 8 * n * link.beta; };
  EXPECT_NEAR(seconds(), ring(4 * 74 + 64) + ring(4 * 352), 1e-12);
  const auto half = [&](double n) { return 14 * link.alpha + 7.0 / 8 * n * link.beta; };
  EXPECT_NEAR(seconds("allreduce.values=bf16", "powersgd.rank=1"), half(74 + 64) + half(352),
              1e-12);
  EXPECT_NEAR(seconds("allreduce.collective=mst"),
              3 * 2 * 2 * link.alpha + 3 * 2 * 1768 * link.beta, 1e-12);
}

TEST(Predictions, NameTheSelectorsWhoseVolumeDependsOnTheGradients) {
  const auto notes = [](const char* assignment, double density) {
    Settings settings = default_settings();
    settings.set_assignment(assignment);
    return fmt::format(
        "{}", fmt::join(volume_notes(candidates(ParameterArena{}, kLength, density, {}, settings)),
                        "\n"));
  };
  const std::string published = notes("gaussiank.refine=paper", 0.001);
  for (const char* line :
       {"dgc: prediction for 26214 entries per step and rank; depending on the gradients it sends "
        "at most 26214",
        "gaussiank: prediction for 26214 entries per step and rank; depending on the gradients it "
        "sends about 26214 (a threshold selector: any number)",
        "redsync: prediction for 26214 entries per step and rank; depending on the gradients it "
        "sends about 26214 (at most twice as many)"})
    EXPECT_NE(published.find(line), std::string::npos) << line << " is missing in\n" << published;
  for (const char* name : {"gtopk is", "randk is", "trimmed is", "dense is"})
    EXPECT_EQ(published.find(name), std::string::npos) << published;
  EXPECT_EQ(notes("gaussiank.refine=histogram", 0.001).find("gaussiank"), std::string::npos);
  EXPECT_EQ(notes("gaussiank.refine=paper", 1), "");
}

TEST(Predictions, AtBreakEvenBothTakeAsLong) {
  const std::vector<Prediction> all = example();
  for (const char* name : {"topk", "gtopk"})
    for (int ranks : {4, 64}) {
      const Prediction& sparse = find(all, name);
      const double bits = break_even(sparse, all, kSlow, ranks);
      ASSERT_TRUE(bits > 0 && std::isfinite(bits)) << name << " " << ranks;
      LinkCost link = kSlow;
      link.beta = 32 / bits;
      const double dense = best_dense(all, link, ranks).seconds(link, ranks);
      EXPECT_NEAR(sparse.seconds(link, ranks) / dense, 1, 1e-3) << name << " " << ranks;
    }
}

TEST(Predictions, BreakEvenIsInfiniteForFreeSelectionAndZeroForSlowSelection) {
  LocalCosts local{.compute = 0.5};
  const std::vector<Prediction> all =
      candidates(ParameterArena{}, kLength, 0.001, local, default_settings());
  EXPECT_TRUE(std::isinf(break_even(find(all, "topk"), all, kSlow, 4)));
  local.step["topk"].update = 1e9;
  const std::vector<Prediction> slow =
      candidates(ParameterArena{}, kLength, 0.001, local, default_settings());
  EXPECT_EQ(break_even(find(slow, "topk"), slow, kSlow, 4), 0);
}

TEST(Predictions, RecommendGtopkForManyRanksAndNeverAnExcludedSparsifier) {
  const std::vector<Prediction> all = example();
  EXPECT_EQ(best(all, kSlow, 64).sparsifier, "gtopk");
  // beside the dense ones, most of these would be the fastest
  for (const char* name : {"randk", "exact", "hierarchical", "powersgd", "scalecom"}) {
    std::vector<Prediction> few = all;
    std::erase_if(few, [&](const Prediction& c) { return c.sparsifier != name && !c.dense; });
    EXPECT_TRUE(best(few, kSlow, 64).dense) << name;
  }

  const auto sentences = recommendations(all, kSlow, {2, 128, 1024, 65536});
  ASSERT_EQ(sentences.size(), 2u);
  EXPECT_TRUE(sentences[1].starts_with("128 to 65536 ranks: use --sparsifier gtopk; at 65536"))
      << sentences[1];
  EXPECT_NE(sentences[1].find("dense is faster above"), std::string::npos) << sentences[1];
}

TEST(Predictions, RecommendDenseOnAFastLink) {
  const std::vector<Prediction> all = example();
  const LinkCost fast{.alpha = 1e-6, .beta = 32 / 10e12};
  EXPECT_TRUE(best(all, fast, 8).dense);
  EXPECT_NE(recommendations(all, fast, {8}).front().find("no sparse exchange is faster"),
            std::string::npos);
}

}  // namespace
}  // namespace tw
