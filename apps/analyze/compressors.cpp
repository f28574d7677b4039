#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "apps/analyze/replay.h"
#include "apps/analyze/subcommands.h"
#include "apps/common/outputs.h"
#include "apps/common/resolve.h"
#include "apps/common/version.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/io/file.h"

namespace tw {

namespace {

struct CompressorOptions {
  std::vector<std::string> files;
  std::string sparsifiers, csv;
  std::vector<double> densities{kDensity};
  int64_t iterations = 3, threads = 1, seed = 1;
  Settings settings = default_settings();
};

/// The recordings of each step, in the order of the ranks. UserError unless those of a step fit
/// together.
std::map<int64_t, std::vector<Recording>> read_steps(const std::vector<std::string>& files) {
  std::map<int64_t, std::vector<Recording>> steps;
  for (const std::string& file : files) {
    Recording one = read_recording(file);
    steps[one.step].push_back(std::move(one));
  }
  for (auto& [step, ranks] : steps) {
    std::ranges::stable_sort(ranks, {}, &Recording::rank);
    for (size_t r = 1; r < ranks.size(); ++r) {
      const Recording &one = ranks[r - 1], &next = ranks[r];
      check(one.rank != next.rank, "[analyze] {} and {} are both of rank {} in step {}", one.path,
            next.path, one.rank, step);
      check(one.ranks == next.ranks, "[analyze] {} is of {} ranks, {} of {}", one.path, one.ranks,
            next.path, next.ranks);
      check(one.tensors == next.tensors, "[analyze] {} and {} have other tensors", one.path,
            next.path);
    }
  }
  return steps;
}

std::vector<std::string> chosen_sparsifiers(const std::string& list) {
  if (list.empty()) return sparsifiers().names();
  std::vector<std::string> names = split(list, ',');
  for (const std::string& name : names) sparsifiers().find(name);
  return names;
}

/// A number, or an empty text where there is none.
std::string cell(double value) { return std::isnan(value) ? "" : fmt::format("{:.6g}", value); }
std::string column(double value) { return std::isnan(value) ? "-" : fmt::format("{:.4f}", value); }

class CompressorTable {
 public:
  explicit CompressorTable(const std::string& csv) {
    csv_ = result_table(csv,
                        "step,sparsifier,d,ranks,density,k,error,contraction,bound_random,"
                        "bound_bell,nnz_over_k,bytes,select_ms,exchange_ms,overlap");
  }

  void heading() const {
    fmt::print("{:<20} {:>8} {:>7} {:>7} {:>7} {:>9} {:>6} {:>10} {:>8} {:>8} {:>7}\n",
               "sparsifier", "density", "error", "||e||^2", "1-k/d", "(1-k/d)^2", "nnz/k", "bytes",
               "select", "exchange", "overlap");
  }
  void row(const std::vector<Recording>& ranks, const std::string& name, const Compression& of) {
    fmt::print("{:<20} {:>8.4g} {:>7} {:>7} {:>7} {:>9} {:>6.3f} {:>10} {:>8.2f} {:>8.2f} {:>7}\n",
               name, of.density, column(of.error), column(of.contraction), column(of.of_random),
               column(of.of_bell), of.sent_over_k, of.bytes, of.select_seconds * 1e3,
               of.exchange_seconds * 1e3, column(of.overlap));
    if (!csv_.is_open()) return;
    csv_.write(fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{:.4f},{:.4f},{}{}\n", ranks[0].step, name,
        ranks[0].u.size(), ranks.size(), of.density, of.k, cell(of.error), cell(of.contraction),
        cell(of.of_random), cell(of.of_bell), cell(of.sent_over_k), of.bytes,
        of.select_seconds * 1e3, of.exchange_seconds * 1e3, cell(of.overlap), provenance_cells()));
  }

 private:
  GrowingFile csv_;
};

void run_compressors(const CompressorOptions& options) {
  const std::vector<std::string> names = chosen_sparsifiers(options.sparsifiers);
  const auto steps = read_steps(options.files);
  CompressorTable table(options.csv);
  fmt::print(
      "error: of the mean over the ranks, relative to that of u; ||e||^2: what a rank keeps of "
      "||u||^2;\n"
      "select, exchange: ms; overlap: entries that any rank sends over the sum of those of each\n");
  ReplayOptions replayed{.iterations = options.iterations,
                         .threads = static_cast<int>(options.threads),
                         .seed = static_cast<uint64_t>(options.seed)};
  for (const auto& [step, ranks] : steps) {
    fmt::print("\nstep {}: {} elements in {} tensors, {} of {} ranks\n", step, ranks[0].u.size(),
               ranks[0].tensors.size(), ranks.size(), ranks[0].ranks);
    table.heading();
    for (const std::string& name : names)
      for (const double density : options.densities) {
        replayed.density = density;
        const Compression found = replay(ranks, name, replayed, options.settings);
        table.row(ranks, name, found);
        if (found.density != density) break;  // it has none
      }
  }
  if (const std::vector<std::string> unread = options.settings.unread({}); !unread.empty())
    fmt::print("\n--set {} has no effect: no sparsifier here reads it\n", fmt::join(unread, ", "));
}

}  // namespace

Subcommand analyze_compressors() {
  auto [command, options] = subcommand(
      "compressors", "every sparsifier on recorded gradients of all ranks", run_compressors);
  OptionTable& t = command.table;
  t.group("Files");
  t.add("files", options->files,
        "gradients of train --save-gradients or thinwire.record(): the ranks of one or more "
        "steps; also without the flag, several of them",
        {.required = true, .positional = true});
  t.add("csv", options->csv, "also write the table to this file", {.traits = kLocal});
  t.group("Sparsifiers");
  t.add("sparsifiers", options->sparsifiers,
        "sparsifiers, separated by commas (see train --list); default: all",
        {.suggestions = sparsifiers().names()});
  t.add("density", options->densities, "densities, separated by commas; dense ones have none",
        {.least = 1e-12, .most = 1});
  t.add("seed", options->seed, "seed of random selectors", {.most = 1e18});
  t.add_settings(options->settings);
  t.group("Measurement");
  t.add("iterations", options->iterations, "steps from a fresh state; prints median times",
        {.least = 1, .most = 100000});
  t.add("threads-per-rank", options->threads, "CPU threads of a rank, which is a thread",
        {.least = 1, .most = 1024});
  return command;
}

}  // namespace tw
