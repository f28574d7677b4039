#include "apps/advise/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace tw {

namespace {

constexpr double kLeastBits = 1e3, kMostBits = 1e15, kStep = 1.78;  // of the search for a window

Advice advice(const Prediction& c) {
  return c.synchronous_dense() ? Advice::never : sparsifiers().find(c.sparsifier).value.advice;
}

/// What the command of a synchronous dense exchange adds to plain dense SGD: the fewer and smaller
/// the changes, the lower the number.
int additions(const Prediction& c) {
  static const std::string usual_collective = default_settings().text(kSumCollective);
  return (c.values != ValueFormat::f32 ? 1 : 0) + (c.collective != usual_collective ? 2 : 0) +
         (c.overlap ? 4 : 0) + (c.sparsifier != kDense ? 8 : 0);
}

/// Where a round's exchange is noticeably faster than every dense one.
class WindowSearch {
 public:
  WindowSearch(const Prediction& challenger, const std::vector<Prediction>& all, const Costs& costs,
               int ranks)
      : challenger_(challenger), all_(all), costs_(costs), ranks_(ranks) {}

  struct Limits {
    double above = 0, below = 0;
  };
  Limits around(double bits) const {
    double inside = std::min(bits, kMostBits);  // inside a node messages take no time
    while (!wins(inside)) {
      if (inside <= kLeastBits) return {};
      inside /= kStep;
    }
    return {.above = limit(inside, 1 / kStep), .below = limit(inside, kStep)};
  }

 private:
  bool wins(double bits) const {
    Costs costs = costs_;
    costs.set_bandwidth(bits);
    const double mine = challenger_.seconds(costs, ranks_);
    return std::ranges::none_of(all_, [&](const Prediction& c) {
      return c.synchronous_dense() && c.seconds(costs, ranks_) <= kNoticeable * mine;
    });
  }

  /// The bandwidth, from `inside` in steps by `factor`, up to which it wins.
  double limit(double inside, double factor) const {
    double outside = inside;
    do {
      inside = outside;
      outside *= factor;
      if (outside < kLeastBits) return 0;
      if (outside > kMostBits) return std::numeric_limits<double>::infinity();
    } while (wins(outside));
    while (std::max(inside, outside) / std::min(inside, outside) > 1.001) {
      const double middle = std::sqrt(inside * outside);
      (wins(middle) ? inside : outside) = middle;
    }
    return inside;
  }

  const Prediction& challenger_;
  const std::vector<Prediction>& all_;
  const Costs& costs_;
  int ranks_;
};

std::string window_text(const Window& window) {
  const Interval& below = window.below;
  const std::string low = bandwidth_text({window.above, window.above, window.above});
  if (std::isinf(below.mid) && !std::isinf(below.low))
    return "; gains more than 2 % at least up to " +
           bandwidth_text({below.low, below.low, below.low}) +
           (window.above > 0 ? ", less below " + low : "");
  if (std::isinf(below.mid))
    return window.above > 0 ? "; gains less than 2 % only below " + low
                            : "; gains more than 2 % at any bandwidth";
  return fmt::format("; gains less than 2 % above {}{}", bandwidth_text(below),
                     window.above > 0 ? " and below " + low : "");
}

}  // namespace

Comparison::Comparison(std::vector<Prediction> all, Rounds rounds, AccuracyRules accuracy,
                       std::string flags)
    : all_(std::move(all)),
      rounds_(std::move(rounds)),
      accuracy_(std::move(accuracy)),
      flags_(std::move(flags)) {}

Comparison Comparison::at(double bits) const {
  Comparison other = *this;
  for (Costs& costs : other.rounds_) costs.set_bandwidth(bits);
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
    return (costs.compute.seconds() + costs.update(kDense)) / of.seconds(costs, ranks);
  });
}

Interval Comparison::speedup(const Prediction& of, int ranks) const {
  const Prediction& dense = best_dense(ranks);
  return over_rounds(
      [&](const Costs& costs) { return dense.seconds(costs, ranks) / of.seconds(costs, ranks); });
}

double Comparison::ratio(const Prediction& of, const Prediction& other, int ranks) const {
  return over_rounds([&](const Costs& costs) {
           return other.seconds(costs, ranks) / of.seconds(costs, ranks);
         })
      .mid;
}

Window Comparison::window(const Prediction& of, int ranks) const {
  std::vector<double> above, below;
  for (const Costs& costs : rounds_) {
    const auto one = WindowSearch(of, all_, costs, ranks).around(costs.bandwidth(ranks));
    above.push_back(one.above);
    below.push_back(one.below);
  }
  return {.above = median_interval(above).mid, .below = median_interval(below)};
}

AccuracyKey Comparison::key_of(const Prediction& of) const {
  std::string options;  // as race.py writes them
  if (of.local_steps > 1) options += fmt::format(" --local-steps {}", of.local_steps);
  for (const auto& [key, value] : of.settings) options += fmt::format(" --set {}={}", key, value);
  if (!options.empty()) options.erase(0, 1);
  return {.sparsifier = of.sparsifier,
          .options = options,
          .model = accuracy_.model,
          .dataset = accuracy_.dataset,
          .density = of.selects ? accuracy_.density : 0};
}

const Accuracy* Comparison::accuracy(const Prediction& of) const {
  if (of.synchronous_dense()) return nullptr;
  return find_accuracy(accuracy_.table, key_of(of));
}

const Accuracy* Comparison::of_other_models(const Prediction& of) const {
  AccuracyKey key = key_of(of);
  const Accuracy* worst = nullptr;
  for (const Accuracy& row : accuracy_.table) {
    key.model = row.model;
    key.dataset = row.dataset;
    const Accuracy* found = find_accuracy(accuracy_.table, key);
    if (found && (!worst || found->loss() > worst->loss())) worst = found;
  }
  return worst;
}

const Accuracy* Comparison::training_to(const Prediction& of, double top1) const {
  return find_training_to(accuracy_.table, key_of(of), top1);
}

Interval Comparison::seconds_of(const Prediction& of, int ranks, const Accuracy& training,
                                double epochs) const {
  const double steps =
      epochs * static_cast<double>(training.images) / static_cast<double>(images(ranks));
  return over_rounds([&](const Costs& costs) { return steps * of.seconds(costs, ranks); });
}

template <class Allowed>
const Prediction* Comparison::fastest(int ranks, const Allowed& allowed) const {
  const Prediction* best = nullptr;
  for (const Prediction& c : all_)
    if (allowed(c) && (!best || ratio(c, *best, ranks) > 1 + 1e-9)) best = &c;
  return best;
}

const Prediction& Comparison::fastest_of_kind(const Prediction& of, int ranks) const {
  const std::string kind = of.kind();
  return *fastest(ranks, [&](const Prediction& c) { return c.kind() == kind; });
}

const Prediction& Comparison::best_dense(int ranks) const {
  const Prediction* plain = fastest(ranks, [](const Prediction& c) {
    return c.synchronous_dense() && c.sparsifier == kDense && !c.overlap;
  });
  const Prediction* best =
      fastest(ranks, [](const Prediction& c) { return c.synchronous_dense(); });
  check<std::logic_error>(best != nullptr, "[advise] no dense prediction");
  return plain && ratio(*best, *plain, ranks) <= 1 + 1e-9 ? *plain : *best;
}

const Prediction& Comparison::plainest_dense(int ranks) const {
  const auto as_fast = [&](const Prediction& c) {
    if (!c.synchronous_dense()) return false;
    const Interval gain = speedup(c, ranks);
    return gain.high >= 1 || gain.mid >= 1 / kNoticeable;
  };
  int fewest = additions(best_dense(ranks));
  for (const Prediction& c : all_)
    if (as_fast(c)) fewest = std::min(fewest, additions(c));
  return *fastest(ranks, [&](const Prediction& c) { return as_fast(c) && additions(c) == fewest; });
}

bool Comparison::may_be_recommended(const Prediction& of) const {
  if (advice(of) == Advice::never) return false;
  const Accuracy* measured = accuracy(of);
  // the accuracy of others, of local steps and of other values is not that of top-k
  if (!measured && advice(of) == Advice::first) {
    if (changing(key_of(of).options).empty()) return true;
    measured = of_other_models(of);
  }
  return measured && measured->loss() <= accuracy_.max_loss;
}

const Prediction* Comparison::best_alternative(int ranks) const {
  const Prediction* best =
      fastest(ranks, [&](const Prediction& c) { return may_be_recommended(c); });
  const Prediction* first = fastest(ranks, [&](const Prediction& c) {
    return advice(c) == Advice::first && may_be_recommended(c);
  });
  return first && ratio(*best, *first, ranks) <= kNoticeable ? first : best;
}

/// The exchanges that are faster than `use` and may not be recommended, with the reason.
std::string Comparison::faster_ones(const Prediction& use, int ranks) const {
  int longest = 0;
  for (const Accuracy& row : accuracy_.table)
    if (row.model == accuracy_.model &&
        (accuracy_.dataset.empty() || row.dataset == accuracy_.dataset))
      longest = std::max(longest, row.epochs);
  std::string losing, brief, unknown;
  std::set<std::string> seen;  // one that sums has a prediction for each collective
  for (const Prediction& c : all_) {
    if (advice(c) == Advice::never || may_be_recommended(c) || ratio(c, use, ranks) <= kNoticeable)
      continue;
    if (!seen.insert(c.kind()).second) continue;
    const Accuracy* measured = accuracy(c);
    const bool shorter = measured && measured->epochs < longest;
    std::string& names = !measured ? unknown : shorter ? brief : losing;
    if (!names.empty()) names += ", ";
    names += c.kind();
    if (!measured) continue;
    std::string loss;  // in as many digits as show that it is above the most
    for (int digits = 1; digits < 6 && (digits == 1 || std::stod(loss) <= accuracy_.max_loss);)
      loss = fmt::format("{:.{}f}", measured->loss(), digits++);
    names +=
        fmt::format(" ({}{})", loss, shorter ? fmt::format(" after {}", measured->epochs) : "");
  }
  std::string text;
  if (!losing.empty())
    text += fmt::format("; faster, but more than {:g} points of top-1 below dense: {}",
                        accuracy_.max_loss, losing);
  if (!brief.empty())
    text += fmt::format(
        "; faster, but more than {:g} points below after fewer epochs than the {} of others: {}",
        accuracy_.max_loss, longest, brief);
  if (!unknown.empty())
    text += fmt::format("; faster, but with an accuracy that is not measured: {}", unknown);
  return text;
}

Comparison::Verdict Comparison::verdict(int ranks) const {
  const Prediction &dense = best_dense(ranks), &plain = plainest_dense(ranks);
  const Prediction* other = best_alternative(ranks);
  const std::string flags = plain.flags();
  if (ranks == 1) return {plain, flags, "1 rank: exchanges nothing; use --sparsifier dense"};
  std::string stay = fmt::format("{} ranks: stay dense ({}); an iteration takes {} s", ranks, flags,
                                 interval_text(seconds(plain, ranks)));
  if (&plain != &dense)
    stay += fmt::format("; the fastest dense exchange ({}) takes {} s: no clear gain",
                        dense.label(), interval_text(seconds(dense, ranks)));
  if (!other)
    return {plain, flags,
            stay + "; no other exchange may be recommended" + faster_ones(dense, ranks)};

  const Interval gain = speedup(*other, ranks);
  const std::string times = interval_text(gain, "{:.3f}") + " times as fast as";
  if (gain.low <= kNoticeable) {
    const char* why = gain.high < 1 ? ""
                      : gain.high <= kNoticeable
                          ? ": gains less than 2 %"
                          : ": not certain; an idle machine or more --rounds tell";
    return {plain, flags,
            fmt::format("{}; {} is {} {}{}{}", stay, other->kind(), times,
                        &plain == &dense ? "that" : "the fastest", why, faster_ones(dense, ranks))};
  }
  const std::string use = other->flags() + flags_;
  std::string text =
      fmt::format("{} ranks: use {}; an iteration takes {} s, {} the best dense exchange ({})",
                  ranks, use, interval_text(seconds(*other, ranks)), times, dense.label());
  text += window_text(window(*other, ranks));
  const Accuracy* measured = accuracy(*other);
  const Accuracy* known = measured ? measured : of_other_models(*other);
  if (!measured) text += "; its accuracy with this model and data is not measured";
  if (known)
    text +=
        fmt::format("; {}top-1 {:.1f} points {} dense ({})",
                    measured ? "" : fmt::format("with {} ", known->model), std::abs(known->loss()),
                    known->loss() < 0 ? "above" : "below", known->training());
  return {*other, use, text + faster_ones(*other, ranks)};
}

std::string bandwidth_text(const Interval& bits) {
  // of the largest number, so that none has an exponent
  const double unit = (std::isinf(bits.high) ? bits.mid : bits.high) >= 1e9 ? 1e9 : 1e6;
  return interval_text({bits.low / unit, bits.mid / unit, bits.high / unit}, "{:.3g}") +
         (unit == 1e9 ? " Gbit/s" : " Mbit/s");
}

}  // namespace tw
