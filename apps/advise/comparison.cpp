#include "apps/advise/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tw {

namespace {

constexpr double kBitsAnElement = 32;
constexpr double kNoticeable = 1.02;  // a smaller gain is not worth a change of the optimizer

bool comparable(const Prediction& c) {
  return !c.dense && c.sparsifier != "randk" && c.sparsifier != "exact" &&
         c.sparsifier != "hierarchical";
}

double least_dense_seconds(const std::vector<Prediction>& all, const Costs& costs, int ranks) {
  double least = std::numeric_limits<double>::infinity();
  for (const Prediction& c : all)
    if (c.dense) least = std::min(least, c.seconds(costs, ranks));
  return least;
}

double break_even_of_round(const Prediction& sparse, const std::vector<Prediction>& all,
                           Costs costs, int ranks) {
  const auto dense_wins = [&](double bits) {
    costs.link.beta = kBitsAnElement / bits;
    return least_dense_seconds(all, costs, ranks) < sparse.seconds(costs, ranks);
  };
  double low = 1e3, high = 1e15;  // 1 kbit/s, 1 Pbit/s
  if (dense_wins(low)) return 0;
  if (!dense_wins(high)) return std::numeric_limits<double>::infinity();
  while (high / low > 1.001) {
    const double middle = std::sqrt(low * high);
    (dense_wins(middle) ? high : low) = middle;
  }
  return low;
}

std::string name_of(const Prediction& c) {
  const std::string collective = c.collective_text();
  return collective.empty() ? c.sparsifier : fmt::format("{} {}", c.sparsifier, collective);
}

}  // namespace

Comparison::Comparison(std::vector<Prediction> all, Rounds rounds, AccuracyRules accuracy)
    : all_(std::move(all)), rounds_(std::move(rounds)), accuracy_(std::move(accuracy)) {}

Comparison Comparison::at(double bits) const {
  Comparison other = *this;
  for (Costs& costs : other.rounds_) costs.link.beta = kBitsAnElement / bits;
  return other;
}

template <class Function>
Interval Comparison::over_rounds(const Function& function) const {
  std::vector<double> values;
  values.reserve(rounds_.size());
  for (const Costs& costs : rounds_) values.push_back(function(costs));
  return median_interval(std::move(values));
}

Interval Comparison::seconds(const Prediction& of, int ranks) const {
  return over_rounds([&](const Costs& costs) { return of.seconds(costs, ranks); });
}

Interval Comparison::exchange_seconds(const Prediction& of, int ranks) const {
  return over_rounds([&](const Costs& costs) { return of.exchange_seconds(costs, ranks); });
}

Interval Comparison::efficiency(const Prediction& of, int ranks) const {
  return over_rounds([&](const Costs& costs) {
    return (costs.compute.seconds() + costs.update("dense")) / of.seconds(costs, ranks);
  });
}

Interval Comparison::speedup(const Prediction& of, int ranks) const {
  const Prediction& dense = best_dense(ranks);
  return over_rounds(
      [&](const Costs& costs) { return dense.seconds(costs, ranks) / of.seconds(costs, ranks); });
}

Interval Comparison::break_even(const Prediction& sparse, int ranks) const {
  return over_rounds(
      [&](const Costs& costs) { return break_even_of_round(sparse, all_, costs, ranks); });
}

const Accuracy* Comparison::accuracy(const Prediction& of) const {
  if (of.dense) return nullptr;
  return find_accuracy(accuracy_.table, of.sparsifier, accuracy_.model, accuracy_.density);
}

bool Comparison::loses_too_much(const Prediction& of) const {
  const Accuracy* measured = accuracy(of);
  return measured && measured->loss() > accuracy_.max_loss;
}

bool Comparison::may_be_recommended(const Prediction& of) const {
  // these send other sums than top-k does, so its accuracy says nothing about theirs
  const bool unlike_topk = of.sparsifier == "powersgd" || of.sparsifier == "scalecom";
  return comparable(of) && !loses_too_much(of) && (!unlike_topk || accuracy(of));
}

const Prediction& Comparison::best_dense(int ranks) const {
  const Prediction* best = nullptr;
  double least = 0;
  for (const Prediction& c : all_) {
    if (!c.dense) continue;
    const double mid = seconds(c, ranks).mid;
    if (!best || mid < least) best = &c, least = mid;
  }
  check<std::logic_error>(best != nullptr, "[advise] no dense prediction");
  return *best;
}

const Prediction* Comparison::best_sparse(int ranks) const {
  const Prediction *best = nullptr, *topk = nullptr;
  double least = 0, topk_seconds = 0;
  for (const Prediction& c : all_) {
    if (!may_be_recommended(c)) continue;
    const double mid = seconds(c, ranks).mid;
    if (!best || mid < least) best = &c, least = mid;
    if (c.sparsifier == "topk") topk = &c, topk_seconds = mid;
  }
  return topk && topk_seconds <= kNoticeable * least ? topk : best;
}

std::string Comparison::losers(const Prediction& use, int ranks) const {
  std::string names;
  for (const Prediction& c : all_)
    if (comparable(c) && loses_too_much(c) && seconds(c, ranks).mid < seconds(use, ranks).mid)
      names += fmt::format("{}{} ({:.1f})", names.empty() ? "" : ", ", c.sparsifier,
                           accuracy(c)->loss());
  return names.empty() ? names
                       : fmt::format("; faster, but more than {:g} points of top-1 below dense: {}",
                                     accuracy_.max_loss, names);
}

Comparison::Verdict Comparison::verdict(int ranks) const {
  const Prediction& dense = best_dense(ranks);
  const Prediction* sparse = best_sparse(ranks);
  const std::string head = fmt::format("{} rank{}: ", ranks, ranks == 1 ? "" : "s");
  const std::string stay = fmt::format("{}stay dense ({}); an iteration takes {} s", head,
                                       dense.flags(), interval_text(seconds(dense, ranks)));
  if (!sparse)
    return {&dense, stay + "; no sparse exchange may be recommended" + losers(dense, ranks)};

  const Interval gain = speedup(*sparse, ranks);
  const std::string times = fmt::format("{} times as fast as", interval_text(gain, "{:.3g}"));
  if (gain.low <= kNoticeable) {
    const char* why = gain.high < 1   ? ""
                      : gain.low <= 1 ? ": within the noise"
                                      : ": may gain less than 2 %";
    return {&dense, fmt::format("{}; {} is {} that{}{}", stay, sparse->sparsifier, times, why,
                                losers(dense, ranks))};
  }
  const Interval bits = break_even(*sparse, ranks);
  std::string text = fmt::format(
      "{}use {}; an iteration takes {} s, {} the best dense exchange "
      "({})",
      head, sparse->flags(), interval_text(seconds(*sparse, ranks)), times, name_of(dense));
  text += std::isinf(bits.mid) ? "; dense is slower at any bandwidth"
                               : "; dense is faster above " + bandwidth_text(bits);
  const Accuracy* measured = accuracy(*sparse);
  text += measured
              ? fmt::format("; top-1 {:.1f} points {} dense (P = {}, {} epochs)",
                            std::abs(measured->loss()), measured->loss() < 0 ? "above" : "below",
                            measured->ranks, measured->epochs)
              : "; its accuracy with this model is not measured";
  return {sparse, text + losers(*sparse, ranks)};
}

std::string bandwidth_text(const Interval& bits) {
  const double unit = bits.mid >= 1e9 ? 1e9 : 1e6;
  return interval_text({bits.low / unit, bits.mid / unit, bits.high / unit}, "{:.3g}") +
         (unit == 1e9 ? " Gbit/s" : " Mbit/s");
}

}  // namespace tw
