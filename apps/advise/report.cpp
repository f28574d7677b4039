#include "apps/advise/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>

namespace tw {

namespace {

/// Of every sparse exchange the prediction; of dense ones the fastest of each kind.
std::vector<const Prediction*> rows_of_table(const Comparison& comparison, int ranks) {
  std::vector<std::pair<double, const Prediction*>> rows;
  std::map<std::string, size_t> dense;  // row of the kind
  for (const Prediction& c : comparison.all()) {
    const double gain = -comparison.speedup(c, ranks).mid;  // the fastest first
    if (c.dense) {
      const std::string kind =
          fmt::format("{} {} {} {}", c.sparsifier, name(c.values), c.overlap, c.local_steps);
      const auto [known, added] = dense.emplace(kind, rows.size());
      if (!added) {
        if (gain < rows[known->second].first) rows[known->second] = {gain, &c};
        continue;
      }
    }
    rows.emplace_back(gain, &c);
  }
  std::ranges::stable_sort(rows, {}, [](const auto& row) { return row.first; });
  std::vector<const Prediction*> sorted;
  sorted.reserve(rows.size());
  for (const auto& row : rows) sorted.push_back(row.second);
  return sorted;
}

std::string accuracy_text(const Comparison& comparison, const Prediction& c) {
  if (c.synchronous_dense()) return "";
  const Accuracy* measured = comparison.accuracy(c);
  if (!measured) return "not measured";
  return fmt::format("{:+.1f} (P {}, {} epochs, {} seed{})", -measured->loss(), measured->ranks,
                     measured->epochs, std::ranges::count(measured->seeds, ';') + 1,
                     measured->seeds.find(';') == std::string::npos ? "" : "s");
}

void write_rows(std::ostream& out, const Comparison& comparison, const std::vector<int64_t>& ranks,
                bool at_link) {
  const auto cells = [](const Interval& of) {
    return fmt::format("{:.6g},{:.6g},{:.6g}", of.mid, of.low, of.high);
  };
  for (const Prediction& c : comparison.all())
    for (const int64_t p : ranks) {
      const int count = static_cast<int>(p);
      const Costs& costs = comparison.rounds().front();
      const Accuracy* accuracy = comparison.accuracy(c);
      std::string break_even = ",,";
      if (!c.synchronous_dense() && at_link) {
        const Interval bits = comparison.break_even(c, count);
        break_even = cells({bits.low * 1e-9, bits.mid * 1e-9, bits.high * 1e-9});
      }
      out << fmt::format("{},{},{},{},{:d},{:.6g},{},{:.6g},{},{},{},{}\n", c.sparsifier,
                         c.collective_text(), c.local_steps, count, at_link,
                         32e-9 / costs.link.beta, cells(comparison.seconds(c, count)),
                         comparison.exchange_seconds(c, count).mid,
                         fmt::format("{:.6g}", comparison.efficiency(c, count).mid),
                         cells(comparison.speedup(c, count)), break_even,
                         accuracy ? fmt::format("{:.2f}", -accuracy->loss()) : "");
    }
}

}  // namespace

std::string break_even_text(const Interval& bits, const Window& window) {
  if (bits.high == 0) return "dense always";
  const bool always = std::isinf(bits.low);
  if (always && window.above == 0) return "sparse always";
  const Interval gbit{bits.low * 1e-9, bits.mid * 1e-9, bits.high * 1e-9};
  std::string text = always ? "none" : interval_text(gbit, "{:.3g}");
  if (window.above > 0) text += fmt::format(", from {:.3g}", window.above * 1e-9);
  return text;
}

void print_costs(Console& console, const Rounds& rounds, double d, double density) {
  const auto over = [&](const auto& value) {
    std::vector<double> values;
    for (const Costs& costs : rounds) values.push_back(value(costs));
    return interval_text(median_interval(std::move(values)));
  };
  console.line("\n{:.0f} parameters, density {:g}", d, density);
  console.line("compute {} s", over([](const Costs& c) { return c.compute.seconds(); }));
  console.line("link {} s per message, {} Gbit/s",
               over([](const Costs& c) { return c.link.alpha; }),
               over([](const Costs& c) { return 32e-9 / c.link.beta; }));
  console.line("addition {} ns per element, merge {} ns per sparse entry",
               over([](const Costs& c) { return 1e9 * c.link.gamma; }),
               over([](const Costs& c) { return 1e9 * c.link.merge; }));
  if (rounds.size() > 1)
    console.line(
        "medians of {} rounds; in brackets, where the median lies with a confidence of "
        "at least 90 %{}",
        rounds.size(), rounds.size() < 5 ? " (fewer than 5 rounds: least to most)" : "");
}

void print_comparison(Console& console, const Comparison& comparison,
                      const std::vector<int64_t>& ranks) {
  for (const int64_t p : ranks) {
    const int count = static_cast<int>(p);
    console.line("\n{:<38} {:<30} {:<22} {:<26} {}", fmt::format("{} rank{}", p, p == 1 ? "" : "s"),
                 "seconds per iteration", "speed-up over dense", "break-even Gbit/s",
                 "top-1, points from dense");
    for (const Prediction* c : rows_of_table(comparison, count))
      console.line("{:<38} {:<30} {:<22} {:<26} {}", c->label(),
                   interval_text(comparison.seconds(*c, count)),
                   interval_text(comparison.speedup(*c, count), "{:.3f}"),
                   c->synchronous_dense() ? ""
                                          : break_even_text(comparison.break_even(*c, count),
                                                            comparison.window(*c, count)),
                   accuracy_text(comparison, *c));
  }
  console.line("");
  for (const std::string& note : volume_notes(comparison.all())) console.line("{}", note);
  for (const int64_t p : ranks)
    console.line("{}", comparison.verdict(static_cast<int>(p)).sentence);
}

void write_comparison(std::ostream& out, const Comparison& comparison,
                      const std::vector<int64_t>& ranks) {
  out << "sparsifier,collective,local_steps,ranks,at_link,gbit_per_s,iteration_seconds,iteration_"
         "low,"
         "iteration_high,exchange_seconds,efficiency,speedup,speedup_low,speedup_high,"
         "break_even_gbit,break_even_low,break_even_high,top1_points\n";
  write_rows(out, comparison, ranks, true);
  for (int step = 0; step <= 40; ++step)  // eight bandwidths a decade
    write_rows(out, comparison.at(1e7 * std::pow(10.0, step / 8.0)), ranks, false);
}

}  // namespace tw
