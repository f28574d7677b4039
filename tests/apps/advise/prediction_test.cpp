// Predictions from the cost model.
#include "apps/advise/prediction.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/apps/advise/example.h"
#include "tests/support/error_text.h"

namespace tw::test {
namespace {

TEST(Predictions, CoverEverySparsifierAndCollective) {
  const std::vector<Prediction> all = example();
  for (const auto& [name, entry] : sparsifiers().entries())
    EXPECT_TRUE(std::ranges::any_of(all, [&](const Prediction& c) { return c.sparsifier == name; }))
        << name;
  for (const std::string& name : allowed_sums(default_settings())) find(all, "dense", name);
}

TEST(Predictions, IterationIsComputePlusSelectionPlusExchange) {
  const std::vector<Prediction> all = example();
  const Costs costs = example_costs();
  EXPECT_NEAR(find(all, "dense", "ring").seconds(costs, 8), 0.5 + 1.658, 1e-3);
  EXPECT_NEAR(find(all, "gtopk").seconds(costs, 8), 0.51 + 0.0139, 1e-3);
  EXPECT_EQ(find(all, "dense", "ring").seconds(costs, 1), 0.5);
}

TEST(Predictions, ExchangeIncludesTheLocalSum) {
  const std::vector<Prediction> all = example();
  Costs costs = example_costs();
  costs.step["gtopk"] = {.update = 0.01, .exchange = 0.02};
  const Prediction& gtopk = find(all, "gtopk");
  EXPECT_DOUBLE_EQ(gtopk.exchange_seconds(costs, 1), 0.02);
  EXPECT_NEAR(gtopk.exchange_seconds(costs, 8), 0.02 + 0.0139, 1e-3);
  EXPECT_NEAR(gtopk.seconds(costs, 8), 0.5 + 0.01 + 0.02 + 0.0139, 1e-3);
}

/// Three tensors of 1 MiB, each a bucket; gradients come from the last to the first.
struct ThreeLayers {
  ParameterArena arena;
  Costs costs{.compute = {.forward = 1, .backward = 3, .ready = {3, 2, 1}},
              .link = {.alpha = 0, .beta = 1e-6}};

  ThreeLayers() {
    for (const char* name : {"a", "b", "c"}) arena.add({.name = name, .shape = {512, 512}});
  }
  std::vector<Prediction> all() const {
    return predictions(arena, 0, 0.01, true, default_settings());
  }
};

TEST(Predictions, OverlapHidesTheExchangesOfEarlyBuckets) {
  const ThreeLayers net;
  const std::vector<Prediction> all = net.all();
  const Prediction& plain = find(all, "dense", "ring");
  const Prediction& overlap = find(all, "dense", "ring overlap");
  const double whole = plain.exchange_seconds(net.costs, 2), bucket = whole / 3;
  ASSERT_NEAR(bucket, 0.262, 1e-3);
  // each bucket is sent before the next gradient is ready: only the last one is seen
  EXPECT_NEAR(overlap.exchange_seconds(net.costs, 2), bucket, 1e-9);
  EXPECT_NEAR(overlap.seconds(net.costs, 2), 4 + bucket, 1e-9);
  // on a slow link they queue behind the first, which starts after 1 s
  Costs slow = net.costs;
  slow.link.beta *= 100;
  EXPECT_NEAR(overlap.exchange_seconds(slow, 2), 100 * whole - 2, 1e-6);
  // slow ranks: the first starts after 3 s, and backward takes 9
  slow.networks[2] = {0, slow.link.beta, 3};
  EXPECT_NEAR(overlap.exchange_seconds(slow, 2), 100 * whole - (9 - 3), 1e-6);
  EXPECT_NE(overlap.flags().find("--scope layer --overlap"), std::string::npos);
}

TEST(Predictions, OverlapIsNotPredictedWithoutAProfileOrAModel) {
  const auto overlaps = [](const std::vector<Prediction>& all) {
    return std::ranges::any_of(all, &Prediction::overlap);
  };
  const ThreeLayers net;
  EXPECT_TRUE(overlaps(net.all()));
  EXPECT_FALSE(overlaps(predictions(net.arena, 0, 0.01, false, default_settings())));
  EXPECT_FALSE(overlaps(predictions(net.arena, 100, 0.01, true, default_settings())));
}

TEST(Predictions, LocalStepsShareSelectionAndExchange) {
  Costs costs = example_costs();
  costs.step["dense"] = {.update = 0.004};
  costs.step["gtopk"] = {.update = 0.01, .exchange = 0.02};
  const std::vector<Prediction> sync = example();
  const std::vector<Prediction> four =
      predictions(ParameterArena{}, kLength, 0.001, false, default_settings(), 4);
  const Prediction& gtopk = find(four, "gtopk");
  EXPECT_NEAR(gtopk.exchange_seconds(costs, 8), (0.02 + 0.0139) / 4, 1e-3);
  EXPECT_NEAR(gtopk.seconds(costs, 8), 0.5 + 0.004 + (0.01 + 0.02 + 0.0139) / 4, 1e-3);
  EXPECT_NEAR(find(four, "dense", "ring").seconds(costs, 8), 0.5 + 0.004 + (0.004 + 1.658) / 4,
              1e-3);
  EXPECT_NO_THROW(find(sync, "bsp"));
  EXPECT_THROW(find(four, "bsp"), std::logic_error);
  EXPECT_NE(gtopk.flags().find("--local-steps 4"), std::string::npos);
}

TEST(Predictions, DependOnTheSettings) {
  const auto seconds = [](const char* sparsifier, auto... assignments) {
    Settings settings = default_settings();
    (settings.set_assignment(assignments), ...);
    const Costs costs{.link = {.alpha = 0, .beta = 1e-8}};
    const bool sums = settings.text("randk.seed") == "shared";
    return find(predictions(ParameterArena{}, kLength, 0.001, false, settings), sparsifier,
                sums ? "ring" : "")
        .exchange_seconds(costs, 8);
  };
  EXPECT_NEAR(seconds("topk", "wire.values=bf16") / seconds("topk"), 6.0 / 8, 1e-3);
  EXPECT_NEAR(seconds("gtopk", "wire.values=bf16") / seconds("gtopk"), 6.0 / 8, 1e-3);
  // 4 bytes of an index, b / 8 of a value, 4 / 128 of a scale
  EXPECT_NEAR(seconds("topk", "wire.values=int8") / seconds("topk"), 5.03125 / 8, 1e-3);
  EXPECT_NEAR(seconds("topk", "wire.values=int2") / seconds("topk"), 4.28125 / 8, 1e-3);
  EXPECT_NEAR(seconds("topk", "wire.values=int2", "wire.block=64") / seconds("topk"), 4.3125 / 8,
              1e-3);
  EXPECT_NEAR(seconds("gtopk", "wire.values=sign") / seconds("gtopk"), 4.125 / 8, 1e-3);
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
  const auto seconds = [&](const char* collective, auto... assignments) {
    Settings settings = default_settings();
    (settings.set_assignment(assignments), ...);
    const auto all = predictions(arena, 0, 0.001, false, settings);
    EXPECT_FALSE(find(all, "powersgd", collective).dense);
    return find(all, "powersgd", collective).exchange_seconds({.link = link}, 8);
  };
  // rank 4: factors of 64 x 4 and 288 x 4, of 10 x 4 and 64 x 4, and the vector
  const auto ring = [&](double n) { return 14 * link.alpha + 14.0 / 8 * n * link.beta; };
  EXPECT_NEAR(seconds("ring"), ring(4 * 74 + 64) + ring(4 * 352), 1e-12);
  const auto half = [&](double n) { return 14 * link.alpha + 7.0 / 8 * n * link.beta; };
  EXPECT_NEAR(seconds("ring bf16", "allreduce.values=bf16", "powersgd.rank=1"),
              half(74 + 64) + half(352), 1e-12);
  EXPECT_NEAR(seconds("binomial_tree", "allreduce.collective=mst"),
              3 * 2 * 2 * link.alpha + 3 * 2 * 1768 * link.beta, 1e-12);
}

TEST(Predictions, EveryDenseSumTakesTheCollectiveThatWasGivenElseAny) {
  const Model model("resnet20", {.classes = 10});
  const auto collectives = [&](const std::string& sparsifier, const char* given = nullptr) {
    Settings settings = default_settings();
    if (given) settings.set("allreduce.collective", given);
    std::set<std::string> found;
    for (const Prediction& c : predictions(model.arena(), 0, 0.001, false, settings))
      if (c.sparsifier == sparsifier) found.insert(c.collective);
    return found;
  };
  using Names = std::set<std::string>;
  for (const char* sums : {"dense", "powersgd", "scalecom", "dgc"}) {
    EXPECT_EQ(collectives(sums).size(), allowed_sums(default_settings()).size()) << sums;
    EXPECT_EQ(collectives(sums, "ring"), Names{"ring"}) << sums << ", the default, but given";
    EXPECT_EQ(collectives(sums, "mst"), Names{"binomial_tree"}) << sums;
  }
  EXPECT_EQ(collectives("topk"), Names{""});
}

TEST(Predictions, RejectACollectiveWithoutAModel) {
  const auto error = [](const char* assignment) {
    Settings settings = default_settings();
    settings.set_assignment(assignment);
    return error_text<UserError>([&] { allowed_sums(settings); });
  };
  EXPECT_EQ(error("allreduce.collective=vendor"),
            "[settings] allreduce.collective=vendor has no cost model; expected one of: "
            "binomial_tree, linear_pipeline, recursive_halving, ring");
  EXPECT_EQ(error("root.collective=vendor"),
            "[settings] the exchange root has no cost model with root.collective=vendor");
}

TEST(Predictions, CountTheEntriesOfSmallTensorsThatAreSentWhole) {
  const Model model("resnet20", {.classes = 10});
  const auto notes = volume_notes(predictions(model.arena(), 0, 0.001, false, default_settings()));
  const auto dgc = std::ranges::find_if(
      notes, [](const std::string& note) { return note.starts_with("dgc: "); });
  ASSERT_NE(dgc, notes.end());
  EXPECT_EQ(*dgc,
            "dgc: prediction for 279 entries and 1386 of small tensors per step and rank; sent, "
            "depending on the gradients: at most 279");
}

TEST(Predictions, NameTheSelectorsWhoseVolumeDependsOnTheGradients) {
  const auto notes = [](const char* assignment, double density) {
    Settings settings = default_settings();
    settings.set_assignment(assignment);
    return fmt::format(
        "{}",
        fmt::join(volume_notes(predictions(ParameterArena{}, kLength, density, false, settings)),
                  "\n"));
  };
  const std::string published = notes("gaussiank.refine=paper", 0.001);
  for (const char* line :
       {"dgc: prediction for 26215 entries per step and rank; sent, depending on the gradients: at "
        "most 26215",
        "gaussiank, hardthreshold, oktopk, sidco: prediction for 26214 entries per step and rank; "
        "sent, depending on the gradients: any number (aimed at: 26214)",
        "redsync: prediction for 26214 entries per step and rank; sent, depending on the "
        "gradients: about 26214 (at most twice as many)"})
    EXPECT_NE(published.find(line), std::string::npos) << line << " is missing in\n" << published;
  for (const char* name : {"gtopk", "randk", "trimmed", "dense"})
    EXPECT_EQ(published.find(name), std::string::npos) << published;
  EXPECT_EQ(notes("gaussiank.refine=histogram", 0.001).find("gaussiank"), std::string::npos);
  EXPECT_EQ(notes("gaussiank.refine=paper", 1), "");
}

}  // namespace
}  // namespace tw::test
