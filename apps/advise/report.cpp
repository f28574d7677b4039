#include "apps/advise/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>

#include "apps/advise/brakes.h"
#include "apps/common/version.h"

namespace tw {

namespace {

/// Of each kind the fastest collective. The fastest first.
std::vector<const Prediction*> rows_of_table(const Comparison& comparison, int ranks) {
  std::vector<std::pair<double, const Prediction*>> rows;
  for (const Prediction& c : comparison.all())
    if (&comparison.fastest_of_kind(c, ranks) == &c)
      rows.emplace_back(-comparison.speedup(c, ranks).mid, &c);
  std::ranges::stable_sort(rows, {}, [](const auto& row) { return row.first; });
  std::vector<const Prediction*> sorted;
  sorted.reserve(rows.size());
  for (const auto& row : rows) sorted.push_back(row.second);
  return sorted;
}

/// `24.3 (23.7-30.6)`, of seconds.
std::string milliseconds_text(const Interval& seconds) {
  return interval_text({1e3 * seconds.low, 1e3 * seconds.mid, 1e3 * seconds.high},
                       seconds.high >= 1 ? "{:.0f}" : "{:.3g}");
}

std::string accuracy_text(const Comparison& comparison, const Prediction& c) {
  if (c.synchronous_dense()) return "";
  const Accuracy* measured = comparison.accuracy(c);
  return measured ? fmt::format("{:+.1f}", -measured->loss()) : "?";
}

/// What the column `top-1` shows: which trainings it is from.
std::string accuracy_note(const Comparison& comparison) {
  std::map<std::string, std::vector<std::string>> trainings;  // names of the rows
  bool unmeasured = false;
  for (const Prediction& c : comparison.all()) {
    if (c.synchronous_dense()) continue;
    const Accuracy* of = comparison.accuracy(c);
    unmeasured |= !of;
    if (!of) continue;
    auto& names = trainings[of->training()];
    if (std::ranges::find(names, c.kind()) == names.end()) names.push_back(c.kind());
  }
  if (trainings.empty()) return "top-1: not measured with this model and these settings";
  std::vector<std::string> parts;
  for (const auto& [training, names] : trainings)
    parts.push_back(trainings.size() == 1
                        ? training
                        : fmt::format("{} ({})", training, fmt::join(names, ", ")));
  if (unmeasured) parts.emplace_back("?: not measured");
  return "top-1: points from dense SGD after equally many epochs: " +
         fmt::format("{}", fmt::join(parts, "; "));
}

/// A sentence of clauses: its first one, whole if it has flags to copy, then each on a line of its
/// own.
void print_clauses(Console& console, std::string_view sentence) {
  size_t end = std::min(sentence.find("; "), sentence.size());
  const std::string_view first = sentence.substr(0, end);
  if (first.find(" --") != std::string_view::npos)
    console.line("{}", first);
  else
    console.paragraph("{}", first);
  while (end < sentence.size()) {
    const size_t begin = end + 2;
    end = std::min(sentence.find("; ", begin), sentence.size());
    console.paragraph("  {}", sentence.substr(begin, end - begin));
  }
}

/// Columns of at least these widths, or as wide as their longest cell.
void print_columns(Console& console, std::vector<size_t> widths,
                   const std::vector<std::vector<std::string>>& rows) {
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    console.line("{}", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

void write_rows(std::ostream& out, const Comparison& comparison, const std::vector<int64_t>& ranks,
                bool at_link) {
  const auto cells = [](const Interval& of) {
    return fmt::format("{:.6g},{:.6g},{:.6g}", of.mid, of.low, of.high);
  };
  std::map<int64_t, std::string> recommended;
  for (const int64_t p : ranks)
    if (at_link) recommended[p] = comparison.verdict(static_cast<int>(p)).flags;
  for (const Prediction& c : comparison.all())
    for (const int64_t p : ranks) {
      const int count = static_cast<int>(p);
      if (!c.dense && &comparison.fastest_of_kind(c, count) != &c) continue;
      const Costs& costs = comparison.rounds().front();
      const Accuracy* accuracy = comparison.accuracy(c);
      std::string break_even = ",,";
      if (!c.synchronous_dense() && at_link) {
        const Interval bits = comparison.window(c, count).below;
        break_even = cells({bits.low * 1e-9, bits.mid * 1e-9, bits.high * 1e-9});
      }
      out << fmt::format("{},{},{},{},{:d},{:.6g},{},{:.6g},{},{},{},{},{},{:d}{}\n", c.sparsifier,
                         c.collective_text(), c.local_steps, count, at_link,
                         1e-9 * costs.bandwidth(count), cells(comparison.seconds(c, count)),
                         comparison.exchange_seconds(c, count).mid,
                         fmt::format("{:.6g}", comparison.efficiency(c, count).mid),
                         cells(comparison.speedup(c, count)), break_even,
                         accuracy ? fmt::format("{:.2f}", -accuracy->loss()) : "", recommended[p],
                         costs.busy, provenance_cells());
    }
}

}  // namespace

std::string break_even_text(const Window& window) {
  const Interval& bits = window.below;
  if (bits.high == 0) return "dense always";
  const bool always = std::isinf(bits.low);
  if (always && window.above == 0) return "sparse always";
  const Interval gbit{bits.low * 1e-9, bits.mid * 1e-9, bits.high * 1e-9};
  std::string text = always                 ? "none"
                     : std::isinf(gbit.mid) ? fmt::format("above {:.3g}", gbit.low)
                                            : interval_text(gbit, "{:.3g}");
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
  for (const auto& [ranks, network] : rounds.front().networks) {
    const std::string link = "link of " + counted(ranks, "rank");
    if (network.beta == 0)
      console.line("{} inside a node, where messages take no time", link);
    else
      console.line("{} {:.4g} s per message, {:.4g} Gbit/s, the slowest in its file", link,
                   network.alpha, 32e-9 / network.beta);
  }
  if (rounds.front().networks.empty())
    console.line("link {} s per message, {} Gbit/s",
                 over([](const Costs& c) { return c.link.alpha; }),
                 over([](const Costs& c) { return 32e-9 / c.link.beta; }));
  console.line("addition {} ns per element, merge {} ns per sparse entry",
               over([](const Costs& c) { return 1e9 * c.link.gamma; }),
               over([](const Costs& c) { return 1e9 * c.link.merge; }));
  if (rounds.size() > 1)
    console.paragraph(
        "medians of {} rounds; in brackets, where the median lies with a confidence of "
        "at least 90 %{}",
        rounds.size(), rounds.size() < 5 ? " (fewer than 5 rounds: least to most)" : "");
}

void print_comparison(Console& console, const Comparison& comparison,
                      const std::vector<int64_t>& ranks) {
  for (const int64_t p : ranks) {
    const int count = static_cast<int>(p);
    console.line("\n{}; the best dense exchange: {}", counted(p, "rank"),
                 comparison.best_dense(count).label());
    std::vector<std::vector<std::string>> table{
        {"exchange", "ms per iteration", "times dense", "break-even Gbit/s", "top-1"}};
    for (const Prediction* c : rows_of_table(comparison, count))
      table.push_back({c->kind(), milliseconds_text(comparison.seconds(*c, count)),
                       interval_text(comparison.speedup(*c, count), "{:.2f}"),
                       c->synchronous_dense() ? "" : break_even_text(comparison.window(*c, count)),
                       accuracy_text(comparison, *c)});
    print_columns(console, {17, 17, 16, 18, 0}, table);
  }
  console.line("");
  console.paragraph(
      "break-even: on faster links an exchange gains less than 2 % over the best dense one");
  print_clauses(console, accuracy_note(comparison));
  for (const std::string& note : volume_notes(comparison.all())) print_clauses(console, note);
  for (const int64_t p : ranks) {
    console.line("");
    print_clauses(console, comparison.verdict(static_cast<int>(p)).sentence);
  }
}

void print_times_to(Console& console, const Comparison& comparison,
                    const std::vector<int64_t>& ranks, double top1) {
  struct Row {
    const Prediction* of;
    const Accuracy* training;
    double epochs;
    Interval seconds;
  };
  for (const int64_t p : ranks) {
    const int count = static_cast<int>(p);
    std::vector<Row> rows;
    std::vector<std::string> below, unknown;
    for (const Prediction* c : rows_of_table(comparison, count))
      if (const Accuracy* of = comparison.training_to(*c, top1)) {
        const double epochs = of->epochs_to(top1);
        rows.push_back({c, of, epochs, comparison.seconds_of(*c, count, *of, epochs)});
      } else {  // any training with a curve reaches 0
        (comparison.training_to(*c, 0) ? below : unknown).push_back(c->kind());
      }
    console.line("\n{}, to a validation top-1 of {:g}", counted(p, "rank"), top1);
    std::ranges::stable_sort(rows, {}, [](const Row& row) { return row.seconds.mid; });
    std::vector<std::vector<std::string>> table{
        {"exchange", "seconds", "epochs", "by a training of"}};
    for (const Row& row : rows)
      table.push_back({row.of->kind(),
                       interval_text(row.seconds, row.seconds.high >= 1000 ? "{:.0f}" : "{:.3g}"),
                       fmt::format("{:.1f}", row.epochs), row.training->training()});
    if (!rows.empty()) print_columns(console, {17, 17, 8, 0}, table);
    if (!below.empty()) console.paragraph("no training has reached it: {}", fmt::join(below, ", "));
    if (!unknown.empty())
      console.paragraph(
          "no curve of a training with this model and these options is known (--accuracy FILE "
          "takes those of a table): {}",
          fmt::join(unknown, ", "));
    if (rows.empty()) continue;
    if (std::ranges::any_of(rows, [](const Row& row) { return row.of->selects; }))
      console.paragraph("epochs of a density warm-up of the trainings count as those after it");
    const Accuracy& first = *rows.front().training;
    if (first.ranks * first.batch_size != comparison.images(count))
      console.paragraph(
          "a step of the trainings has {} images, here {}: that as many epochs are enough is not "
          "measured",
          first.ranks * first.batch_size, comparison.images(count));
    const auto best = rows.begin(),
               dense = std::ranges::find_if(rows, &Prediction::synchronous_dense, &Row::of);
    if (dense == best || dense == rows.end()) continue;
    console.paragraph("{} takes {:.2f} of the seconds of {}, the fastest dense exchange of these",
                      best->of->kind(), best->seconds.mid / dense->seconds.mid, dense->of->kind());
  }
}

void print_brakes(Console& console, const Topology& topology, const Comparison& comparison,
                  const std::vector<int64_t>& ranks) {
  console.line("");
  console.paragraph(
      "links or ranks are not alike: all count as slow as the slowest, too many seconds where few "
      "messages use it, too few where they wait at several; outages do not count");
  for (const int64_t p : ranks)
    for (const std::string& sentence : brakes(topology, comparison, static_cast<int>(p)))
      print_clauses(console, sentence);
}

void write_comparison(std::ostream& out, const Comparison& comparison,
                      const std::vector<int64_t>& ranks) {
  out << "sparsifier,collective,local_steps,ranks,at_link,gbit_per_s,iteration_seconds,"
         "iteration_low,iteration_high,exchange_seconds,efficiency,speedup,speedup_low,"
         "speedup_high,break_even_gbit,break_even_low,break_even_high,top1_points,recommended,"
         "busy"
      << provenance_names() << "\n";
  write_rows(out, comparison, ranks, true);
  for (int step = 0; step <= 40; ++step)  // eight bandwidths a decade
    write_rows(out, comparison.at(1e7 * std::pow(10.0, step / 8.0)), ranks, false);
}

}  // namespace tw
