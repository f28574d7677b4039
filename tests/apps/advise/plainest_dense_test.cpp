// Which command a verdict names that stays dense.
#include "apps/advise/comparison.h"
#include "tests/apps/advise/example.h"

namespace tw::test {
namespace {

/// A synchronous dense exchange; an iteration takes `seconds` more than backward.
Prediction dense_taking(double seconds, const std::string& collective, ValueFormat values,
                        bool overlap = false) {
  using Map = std::map<std::string, std::string>;
  return {.sparsifier = "dense",
          .collective = collective,
          .values = values,
          .dense = true,
          .settings = values == ValueFormat::f32 ? Map{} : Map{{"allreduce.values", "bf16"}},
          .overlap = overlap,
          .loads = {{.end_parameter = 1,
                     .seconds = [seconds](const LinkCost&, int) { return seconds; }}}};
}

constexpr ValueFormat kFull = ValueFormat::f32, kHalf = ValueFormat::bf16;

/// Rounds with these seconds of backward, whose end is when the gradient is ready.
Rounds rounds_of(const std::vector<double>& backward) {
  Rounds rounds;
  for (const double seconds : backward)
    rounds.push_back({.compute = {.backward = seconds, .ready = {seconds}}});
  return rounds;
}

/// The verdict on dense exchanges that take these seconds, and on a slow topk.
Comparison::Verdict verdict_on(std::vector<Prediction> dense,
                               const std::vector<double>& backward = {0}) {
  dense.push_back({.sparsifier = "topk",
                   .selects = true,
                   .loads = {{.seconds = [](const LinkCost&, int) { return 1.8; }}}});
  return Comparison(std::move(dense), rounds_of(backward), {}).verdict(4);
}

void expect_named(const std::string& flags, const std::vector<Prediction>& dense) {
  const std::string sentence = verdict_on(dense).sentence;
  EXPECT_NE(sentence.find("stay dense (" + flags + ")"), std::string::npos) << sentence;
}

TEST(PlainestDense, HasTheFewestOptionsOfThoseWithinTwoPercent) {
  const Prediction fastest = dense_taking(0.9, "recursive_halving", kHalf, true),
                   overlap = dense_taking(0.915, "ring", kFull, true),
                   other = dense_taking(0.914, "recursive_halving", kFull),
                   half = dense_taking(0.916, "ring", kHalf),
                   plain = dense_taking(0.917, "ring", kFull);
  expect_named("--sparsifier dense --allreduce ring", {fastest, overlap, other, half, plain});
  expect_named("--sparsifier dense --allreduce ring --set allreduce.values=bf16",
               {overlap, half, other, fastest});
  expect_named("--sparsifier dense --allreduce recursive_halving", {overlap, other, fastest});
  expect_named("--sparsifier dense --allreduce ring --scope layer --overlap", {fastest, overlap});
  // of equally many options, the faster
  expect_named("--sparsifier dense --allreduce recursive_halving",
               {fastest, dense_taking(0.915, "binomial_tree", kFull), other});
}

TEST(PlainestDense, IsNotSlowerThanThat) {
  expect_named(
      "--sparsifier dense --allreduce recursive_halving --set allreduce.values=bf16 "
      "--scope layer --overlap",
      {dense_taking(0.93, "ring", kFull), dense_taking(0.9, "recursive_halving", kHalf, true)});
}

TEST(PlainestDense, MayBeSlowerWithinTheNoise) {
  // in the rounds, the other exchange takes 0.9 s
  const auto named = [](const std::vector<double>& seconds) {
    Prediction plain = dense_taking(0, "ring", kFull);
    plain.loads.front().seconds = [](const LinkCost& link, int) { return link.alpha; };
    Rounds rounds = rounds_of({0, 0, 0, 0, 0});
    for (size_t i = 0; i < rounds.size(); ++i) rounds[i].link.alpha = seconds[i];
    return Comparison({plain, dense_taking(0.9, "ring", kHalf)}, rounds, {}).verdict(4).use.values;
  };
  EXPECT_EQ(named({0.89, 0.93, 0.95, 0.97, 1}), kFull) << "the faster in one round";
  EXPECT_EQ(named({0.91, 0.93, 0.95, 0.97, 1}), kHalf);
}

TEST(PlainestDense, WhatDisturbsAWholeRoundIsNoNoise) {
  const std::vector<Prediction> dense{dense_taking(0.95, "ring", kFull),
                                      dense_taking(0.9, "ring", kHalf)};
  EXPECT_EQ(verdict_on(dense, {0, 0.1, 0.2, 0.3, 0.4}).use.values, kHalf);
}

TEST(PlainestDense, TheRivalIsStillTheFastest) {
  const Comparison::Verdict verdict =
      verdict_on({dense_taking(0.909, "ring", kFull), dense_taking(0.9, "ring", kHalf, true)});
  EXPECT_EQ(verdict.use.label(), "dense ring");
  EXPECT_EQ(verdict.sentence,
            "4 ranks: stay dense (--sparsifier dense --allreduce ring); an iteration takes 0.909 "
            "s; the fastest dense exchange (dense ring bf16 overlap) takes 0.9 s: no clear gain; "
            "topk is 0.500 times as fast as the fastest");
}

}  // namespace
}  // namespace tw::test
