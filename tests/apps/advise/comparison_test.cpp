// Break-even bandwidths, speed-ups and verdicts.
#include "apps/advise/comparison.h"

#include <cmath>

#include "apps/advise/report.h"
#include "tests/apps/advise/example.h"

namespace tw::test {
namespace {

/// Rounds whose costs of `sparsifier` differ by these seconds.
Rounds rounds_with(const std::string& sparsifier, const std::vector<double>& seconds) {
  Rounds rounds;
  for (const double more : seconds) {
    rounds.push_back(example_costs());
    rounds.back().step[sparsifier].update += more;
  }
  return rounds;
}

/// Only dense ring and topk, on the example's link.
std::vector<Prediction> dense_and_topk() {
  const std::vector<Prediction> all = example();
  return {find(all, "dense", "ring"), find(all, "topk")};
}

/// The update by which topk takes exactly as long as dense on 4 ranks.
double even_update() {
  const std::vector<Prediction> two = dense_and_topk();
  return two[0].seconds(example_costs(), 4) - two[1].seconds(example_costs(), 4);
}

AccuracyRules with_loss(const std::string& sparsifier, double points) {
  return {.table = {{.sparsifier = sparsifier,
                     .model = "net",
                     .dataset = "cifar10",
                     .ranks = 4,
                     .density = 0.001,
                     .epochs = 10,
                     .seeds = "1",
                     .top1 = 0.85 - points / 100,
                     .dense_top1 = 0.85}},
          .model = "net",
          .density = 0.001};
}

TEST(Comparison, AtBreakEvenItGainsTwoPercent) {
  const Comparison comparison(example(), {example_costs()}, {});
  for (const char* name : {"topk", "gtopk"})
    for (const int ranks : {4, 64}) {
      const Prediction& sparse = find(comparison.all(), name);
      const double bits = comparison.window(sparse, ranks).below.mid;
      ASSERT_TRUE(bits > 0 && std::isfinite(bits)) << name << " " << ranks;
      EXPECT_NEAR(comparison.at(bits).speedup(sparse, ranks).mid, 1.02, 1e-3)
          << name << " " << ranks;
      EXPECT_LT(comparison.at(2 * bits).speedup(sparse, ranks).mid, 1.02) << name << " " << ranks;
    }
}

TEST(Comparison, AVerdictChangesAtTheBreakEven) {
  // topk sends fewer messages, so it is a little faster at any bandwidth
  for (const double compute : {0.5, 5.0}) {
    Costs costs = example_costs();
    costs.compute.forward = compute;
    costs.step.clear();
    const Comparison comparison(dense_and_topk(), {costs}, {});
    const Prediction& topk = comparison.all()[1];
    const double bits = comparison.window(topk, 4).below.mid;
    ASSERT_TRUE(bits > 0 && std::isfinite(bits)) << compute;
    EXPECT_GT(comparison.at(1e3 * bits).speedup(topk, 4).mid, 1) << compute;
    EXPECT_EQ(comparison.at(0.9 * bits).verdict(4).use.sparsifier, "topk") << compute;
    EXPECT_TRUE(comparison.at(1.1 * bits).verdict(4).use.dense) << compute;
  }
}

TEST(Comparison, BreakEvenIsInfiniteForFreeSelectionAndZeroForSlowSelection) {
  Costs costs = example_costs();
  costs.compute.forward = 0.01;  // the messages that it saves take long beside this
  costs.step.clear();
  const std::vector<Prediction> all = example();
  const Comparison free(all, {costs}, {});
  EXPECT_TRUE(std::isinf(free.window(find(free.all(), "topk"), 4).below.mid));
  costs.step["topk"].update = 1e9;
  const Comparison slow(all, {costs}, {});
  EXPECT_EQ(slow.window(find(slow.all(), "topk"), 4).below.mid, 0);
}

/// topk selects for this long in each of five rounds, beside a short step.
Comparison selecting_for(const std::vector<double>& seconds) {
  Rounds rounds = rounds_with("topk", seconds);
  for (Costs& costs : rounds) {
    costs.compute.forward = 0.01;
    costs.step["topk"].update -= example_costs().update("topk");
  }
  return Comparison(dense_and_topk(), rounds, {});
}

TEST(Comparison, AnInfiniteBreakEvenKeepsItsRange) {
  const Comparison mixed = selecting_for({0, 0, 0, 0.01, 0.01});
  const Prediction& topk = mixed.all()[1];
  const Interval bits = mixed.window(topk, 4).below;
  EXPECT_TRUE(std::isinf(bits.mid) && std::isfinite(bits.low)) << bits.low;
  const std::string text = break_even_text(mixed.window(topk, 4));
  EXPECT_EQ(text, fmt::format("above {:.3g}", bits.low * 1e-9));
  const std::string sentence = mixed.verdict(4).sentence;
  EXPECT_NE(sentence.find("; gains more than 2 % at least up to "), std::string::npos) << sentence;

  const Comparison free = selecting_for({0, 0, 0, 0, 0});
  EXPECT_EQ(break_even_text(free.window(topk, 4)), "sparse always");
  EXPECT_NE(free.verdict(4).sentence.find("; gains more than 2 % at any bandwidth"),
            std::string::npos);
}

TEST(Comparison, ABreakEvenOfZeroKeepsItsRange) {
  const Comparison mixed = selecting_for({1e9, 1e9, 1e9, 0.01, 0.01});
  const Prediction& topk = mixed.all()[1];
  const Interval bits = mixed.window(topk, 4).below;
  EXPECT_EQ(bits.mid, 0);
  EXPECT_EQ(break_even_text(mixed.window(topk, 4)),
            interval_text({0, 0, bits.high * 1e-9}, "{:.3g}"));
  EXPECT_GT(bits.high, 0);
  const Comparison slow = selecting_for({1e9, 1e9, 1e9, 1e9, 1e9});
  EXPECT_EQ(break_even_text(slow.window(topk, 4)), "dense always");
}

TEST(Comparison, AWindowMayHaveALowerEnd) {
  // an allgather of many ranks sends more bytes than a ring and fewer messages
  Costs costs{.compute = {.forward = 0.05}, .link = {.alpha = 1e-3, .beta = 3.2e-9}};
  const Comparison comparison(
      predictions(ParameterArena{}, 270'000, 0.001, false, default_settings()), {costs}, {});
  const Prediction& topk = find(comparison.all(), "topk");
  const Window window = comparison.window(topk, 1000);
  EXPECT_GT(comparison.speedup(topk, 1000).mid, 1.02);
  EXPECT_GT(window.above, 0);
  EXPECT_LT(comparison.at(window.above / 2).speedup(topk, 1000).mid, 1);
  EXPECT_NEAR(comparison.at(window.above).speedup(topk, 1000).mid, 1.02, 1e-2);
  const std::string sentence = comparison.verdict(1000).sentence;
  EXPECT_NE(sentence.find("only below"), std::string::npos) << sentence;
  EXPECT_EQ(sentence.find("above 0 "), std::string::npos) << sentence;
}

TEST(Comparison, OneRankExchangesNothing) {
  const Comparison::Verdict verdict = Comparison(example(), {example_costs()}, {}).verdict(1);
  EXPECT_EQ(verdict.use.sparsifier, "dense");
  EXPECT_NE(verdict.sentence.find("1 rank: exchanges nothing"), std::string::npos);
}

TEST(Comparison, ChoosesByTheRatiosWithinRounds) {
  // gtopk is faster than topk by 5 % in every round; its least disturbed rounds are other ones
  std::vector<Prediction> all = dense_and_topk();
  all.push_back(find(example(), "gtopk"));
  Rounds rounds;
  for (const double compute : {0.1, 0.2, 0.9, 1.5, 1.6}) {
    rounds.push_back(example_costs());
    Costs& costs = rounds.back();
    costs.compute.forward = compute;
    costs.step["topk"].update = 0.01;
    const double topk = all[1].seconds(costs, 4);
    costs.step["gtopk"].update = 0;
    costs.step["gtopk"].update = topk / 1.05 - all[2].seconds(costs, 4);
  }
  const Comparison comparison(all, rounds, with_loss("gtopk", 0));
  EXPECT_EQ(comparison.best_alternative(4)->sparsifier, "gtopk");
}

TEST(Comparison, AChangedSettingHidesTheAccuraciesOfItsSparsifiersOnly) {
  AccuracyRules rules = with_loss("gtopk", 6);
  const Comparison other(example({"oktopk.exact_every=1"}), {example_costs()}, rules);
  EXPECT_NE(other.accuracy(find(other.all(), "gtopk")), nullptr);
  const auto conserve = example({"gtopk.put_back=conserve"});
  const Comparison own(conserve, {example_costs()}, rules);
  EXPECT_EQ(own.accuracy(find(own.all(), "gtopk")), nullptr);
  EXPECT_NE(own.verdict(64).use.sparsifier, "gtopk") << "not measured is not good";
  rules.table[0].options = "--set gtopk.put_back=conserve";
  const Comparison measured(conserve, {example_costs()}, rules);
  EXPECT_NE(measured.accuracy(find(measured.all(), "gtopk")), nullptr);
}

TEST(Comparison, TheEncodingOfIndicesKeepsTheAccuracyAndThatOfValuesNeedsOne) {
  AccuracyRules rules = with_loss("topk", 4.5);
  rules.table[0].options = "--set wire.values=sign --set wire.indices=packed";
  for (const char* indices : {"packed", "plain", "chunked", "auto"}) {
    const std::string encoding = fmt::format("wire.indices={}", indices);
    const auto all = example({"wire.values=sign", encoding.c_str()});
    EXPECT_NE(Comparison(all, {example_costs()}, rules).accuracy(find(all, "topk")), nullptr);
    EXPECT_TRUE(Comparison(all, {example_costs()}, {}).verdict(4).use.dense) << indices;
    const auto f32 = example({encoding.c_str()});
    EXPECT_FALSE(Comparison(f32, {example_costs()}, {}).verdict(4).use.dense) << indices;
  }
}

TEST(Comparison, TheRivalIsTheBestDenseExchange) {
  const Comparison comparison(example(), {example_costs()}, {});
  const Prediction& rival = comparison.best_dense(8);
  EXPECT_EQ(rival.values, ValueFormat::bf16);
  for (const Prediction& c : comparison.all())
    EXPECT_TRUE(!c.dense || comparison.seconds(rival, 8).mid <= comparison.seconds(c, 8).mid);
  EXPECT_EQ(comparison.speedup(rival, 8).mid, 1);
}

TEST(Comparison, LocalStepsAreRecommendedOnlyWithAGoodAccuracy) {
  std::vector<Prediction> all = example({}, 16);
  for (const Prediction& c : example())
    if (c.dense) all.push_back(c);
  AccuracyRules rules = with_loss("dense", 35);
  rules.table[0].options = "--local-steps 16";
  const auto verdict = [&] { return Comparison(all, {example_costs()}, rules).verdict(4); };
  EXPECT_EQ(Comparison(all, {example_costs()}, rules).best_dense(4).local_steps, 1);
  EXPECT_TRUE(verdict().use.synchronous_dense()) << verdict().sentence;
  EXPECT_NE(verdict().sentence.find("below dense: dense H=16 (35.0)"), std::string::npos)
      << verdict().sentence;
  rules.table.clear();
  EXPECT_TRUE(verdict().use.synchronous_dense()) << verdict().sentence;
  const std::string sentence = verdict().sentence;
  EXPECT_NE(sentence.find(" dense H=16, ", sentence.find("not measured: ")), std::string::npos)
      << sentence;
  rules = with_loss("dense", 1);
  rules.table[0].options = "--local-steps 16";
  EXPECT_EQ(verdict().use.label().substr(0, 6), "dense ");
  EXPECT_EQ(verdict().use.local_steps, 16);
  EXPECT_NE(verdict().sentence.find("top-1 1.0 points below dense"), std::string::npos);
}

TEST(Comparison, TopkWithLocalStepsNeedsAGoodAccuracyOfAllOtherModels) {
  std::vector<Prediction> all = example({}, 16);
  for (const Prediction& c : example())
    if (c.dense) all.push_back(c);
  AccuracyRules rules = with_loss("topk", 1);
  rules.table[0].options = "--local-steps 16";
  rules.model = "own";
  const auto verdict = [&] { return Comparison(all, {example_costs()}, rules).verdict(4); };
  EXPECT_EQ(verdict().use.sparsifier, "topk") << verdict().sentence;
  const char* const told = "is not measured; with net top-1 1.0 points below dense (cifar10";
  EXPECT_NE(verdict().sentence.find(told), std::string::npos) << verdict().sentence;
  rules.table.push_back(rules.table[0]);
  rules.table[1].top1 = 0.8;
  for (std::string* other : {&rules.table[1].model, &rules.table[1].dataset}) {
    const std::string before = std::exchange(*other, "third");
    EXPECT_TRUE(verdict().use.synchronous_dense()) << verdict().sentence;
    *other = before;
  }
}

// train refuses others
TEST(Comparison, ACommandHasTheSettingsThatItsMethodReads) {
  const auto assignments = {"allreduce.collective=linear_pipeline", "wire.values=bf16",
                            "wire.block=64", "hierarchical.node=2", "powersgd.rank=2"};
  const std::vector<Prediction> all = example(assignments);
  EXPECT_EQ(find(all, "dense", "linear_pipeline").flags(),
            "--sparsifier dense --allreduce linear_pipeline");
  EXPECT_EQ(find(all, "powersgd", "linear_pipeline").flags(),
            "--sparsifier powersgd --allreduce linear_pipeline --set powersgd.rank=2");
  EXPECT_EQ(find(all, "quantized").flags(), "--sparsifier quantized");
  EXPECT_EQ(find(all, "hierarchical").flags(),
            "--sparsifier hierarchical --set allreduce.collective=linear_pipeline "
            "--set hierarchical.node=2 --set wire.values=bf16");
  AccuracyRules rules = with_loss("topk", 0);
  rules.table[0].options = "--set wire.values=bf16";
  const auto sparse = Comparison(all, {example_costs()}, rules).verdict(64);
  EXPECT_NE(sparse.sentence.find("use --sparsifier topk --set wire.values=bf16;"),
            std::string::npos)
      << sparse.sentence;
}

TEST(Comparison, EfficiencyComparesWithOneDenseRank) {
  Costs costs = example_costs();
  costs.step["dense"].update = 0.1;
  costs.step["gtopk"].update = 0.11;
  const Comparison comparison(example(), {costs}, {});
  const Prediction& gtopk = find(comparison.all(), "gtopk");
  EXPECT_NEAR(comparison.efficiency(gtopk, 8).mid, (0.5 + 0.1) / (0.5 + 0.11 + 0.0139), 1e-3);
}

TEST(Comparison, WhatDisturbsAWholeRoundCancelsInTheSpeedUp) {
  Rounds rounds;
  for (const double compute : {0.5, 0.9, 0.6, 0.7, 0.8}) {
    rounds.push_back(example_costs());
    rounds.back().compute.forward = compute;
  }
  const Comparison comparison(dense_and_topk(), rounds, {});
  const Interval seconds = comparison.seconds(comparison.all()[1], 4);
  const Interval gain = comparison.speedup(comparison.all()[1], 4);
  EXPECT_NEAR(seconds.high - seconds.low, 0.4, 1e-9);
  EXPECT_LT(gain.low, gain.high);
  EXPECT_GT(gain.low, 1.9);
}

TEST(Comparison, RecommendsASparsifierOnASlowLink) {
  const Comparison comparison(dense_and_topk(), {example_costs()}, {});
  const Comparison::Verdict verdict = comparison.verdict(4);
  EXPECT_EQ(verdict.use.sparsifier, "topk");
  for (const char* text :
       {"4 ranks: use --sparsifier topk", "times as fast as the best dense",
        "gains less than 2 % above", "accuracy with this model and data is not measured"})
    EXPECT_NE(verdict.sentence.find(text), std::string::npos) << verdict.sentence;
}

TEST(Comparison, StaysDenseOnAFastLink) {
  const Comparison comparison = Comparison(example(), {example_costs()}, {}).at(1e13);
  const Comparison::Verdict verdict = comparison.verdict(8);
  EXPECT_TRUE(verdict.use.dense);
  EXPECT_NE(verdict.sentence.find("8 ranks: stay dense (--sparsifier dense"), std::string::npos)
      << verdict.sentence;
  EXPECT_EQ(verdict.sentence.find("noise"), std::string::npos) << verdict.sentence;
}

TEST(Comparison, StaysDenseWithinTheNoise) {
  const double even = even_update();
  const auto verdict = [&](double faster, double noise) {
    std::vector<double> seconds;
    for (const double part : {-1.0, -0.5, 0.0, 0.5, 1.0})
      seconds.push_back(even - faster + part * noise);
    return Comparison(dense_and_topk(), rounds_with("topk", seconds), {}).verdict(4);
  };
  EXPECT_EQ(verdict(0.3, 0.1).use.sparsifier, "topk");
  EXPECT_TRUE(verdict(0.3, 0.4).use.dense);
  const auto expect = [&](double faster, double noise, const std::string& end) {
    const std::string sentence = verdict(faster, noise).sentence;
    EXPECT_TRUE(sentence.ends_with(end)) << sentence << "\ninstead of\n" << end;
  };
  expect(0.3, 0.4, "that: not certain; an idle machine or more --rounds tell");
  expect(0.05, 0.02, "that: not certain; an idle machine or more --rounds tell");
  expect(0.01, 0.005, "that: gains less than 2 %");
  expect(0.01, 0.02, "that: gains less than 2 %");
  expect(0.01, 0, "that: gains less than 2 %");
  expect(-0.3, 0.1, " that");
}

TEST(Comparison, PrefersTopkUnlessAMeasuredOneIsFasterByMoreThanTwoPercent) {
  const std::vector<Prediction> all = example();
  const auto best = [&](double less, const AccuracyRules& rules) {
    Costs costs = example_costs();
    for (auto& [name, step] : costs.step) step.update = name == "sidco" ? 0.1 - less : 0.1;
    return Comparison(all, {costs}, rules).verdict(8);
  };
  EXPECT_EQ(best(0.005, with_loss("sidco", 1)).use.sparsifier, "topk");
  EXPECT_EQ(best(0.05, with_loss("sidco", 1)).use.sparsifier, "sidco");
  const Comparison::Verdict unmeasured = best(0.05, {});
  EXPECT_EQ(unmeasured.use.sparsifier, "topk");
  EXPECT_NE(unmeasured.sentence.find("with an accuracy that is not measured: sidco"),
            std::string::npos)
      << unmeasured.sentence;
}

TEST(Comparison, NeverRecommendsRandkAReferenceOrWhatLosesTooMuch) {
  Costs costs = example_costs();
  for (const char* name : {"randk", "exact", "hierarchical", "powersgd", "scalecom", "gtopk"})
    costs.step[name].update = -0.3;  // faster than all others
  for (const double points : {1.9, 2.01}) {
    const Comparison comparison(example(), {costs}, with_loss("gtopk", points));
    const Comparison::Verdict verdict = comparison.verdict(8);
    EXPECT_EQ(verdict.use.sparsifier == "gtopk", points < 2) << verdict.sentence;
    const std::string text =
        points < 2 ? "top-1 1.9 points below dense (cifar10, 4 ranks, 10 epochs, 1 seed)"
                   : "more than 2 points of top-1 below dense: gtopk (2.01)";
    EXPECT_NE(verdict.sentence.find(text), std::string::npos) << verdict.sentence;
  }
}

// topk lost as much after 10 epochs as four bits did, and passes after 30
TEST(Comparison, AShortTrainingDoesNotCountAsALongOne) {
  AccuracyRules rules = with_loss("topk", 2.8);
  rules.table.push_back(rules.table[0]);
  rules.table.back().options = "--set wire.values=int4";
  const auto says = [&](const char* values, const char* text) {
    const auto verdict = Comparison(example({values}), {example_costs()}, rules).verdict(4);
    EXPECT_NE(verdict.sentence.find(text), std::string::npos) << verdict.sentence;
  };
  says("wire.values=f32", "faster, but more than 2 points of top-1 below dense: topk (2.8)");
  rules.table.push_back(with_loss("topk", 0.7).table[0]);
  rules.table.back().epochs = 30;
  says("wire.values=f32", "use --sparsifier topk");
  says("wire.values=int4", "after fewer epochs than the 30 of others: topk (2.8 after 10)");
}

TEST(Comparison, AccuracyIsThatOfTheModelAndDensity) {
  AccuracyRules rules = with_loss("topk", 1);
  const std::vector<Prediction> two = dense_and_topk();
  EXPECT_NE(Comparison(two, {example_costs()}, rules).accuracy(two[1]), nullptr);
  EXPECT_EQ(Comparison(two, {example_costs()}, rules).accuracy(two[0]), nullptr) << "dense";
  rules.density = 0.01;
  EXPECT_EQ(Comparison(two, {example_costs()}, rules).accuracy(two[1]), nullptr);
  rules = with_loss("topk", 1);
  rules.model = "other";
  EXPECT_EQ(Comparison(two, {example_costs()}, rules).accuracy(two[1]), nullptr);
}

}  // namespace
}  // namespace tw::test
