#include <algorithm>

#include "apps/analyze/subcommands.h"
#include "apps/common/distributions.h"
#include "apps/common/outputs.h"
#include "apps/common/version.h"
#include "engine/io/file.h"
#include "sparsify/selector.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

struct TheoryOptions {
  int64_t d = 1'000'000, seed = 1, threads = 1;
  std::vector<double> densities{0.001, 0.01, 0.1, 0.5};
  std::string csv;
};

/// A distribution and the closed form of Top-k's residual relative to the vector.
struct Case {
  std::string name;
  Draw draw;
  double (*closed)(double density);
};

std::vector<Case> cases() {
  const Draw signs = [](const Philox::Block& x) { return x[0] & 1 ? 1.0f : -1.0f; };
  return {{"gaussian", distributions().at("gaussian"), left_of_gaussian},
          {"laplace", distributions().at("laplace"), left_of_laplace},
          {"uniform", distributions().at("uniform"), left_of_uniform},
          {"constant", signs, left_of_random}};
}

class TheoryTable {
 public:
  explicit TheoryTable(const TheoryOptions& options)
      : options_(options),
        ctx_(Device::cpu, static_cast<int>(options.threads)),
        seed_(static_cast<uint64_t>(options.seed)),
        u_(static_cast<size_t>(options.d)),
        e_(u_.size()) {
    csv_ = result_table(options.csv,
                        "vector,density,topk_exact,topk_drawn,randk_exact,randk_drawn,bound");
  }

  void rows(const Case& of);

 private:
  double measured(const std::string& selector, double density);

  TheoryOptions options_;
  Context ctx_;
  uint64_t seed_;
  std::vector<float> u_, e_;
  std::vector<Moments> blocks_;
  Moments measure_;
  GrowingFile csv_;
};

double TheoryTable::measured(const std::string& selector, double density) {
  const auto chosen = selectors().find(selector).value(ctx_, default_settings(), {.seed = seed_});
  std::ranges::fill(e_, 0.0f);
  SparseVector out;
  const SelectStep step{
      .g = u_, .e = e_, .k = entries_to_keep(density, u_.size()), .density = density};
  density < 1 ? chosen->select(ctx_, step, out) : select_all(ctx_, step, out);
  return residual_fraction(ctx_, measure_, e_, blocks_);
}

void TheoryTable::rows(const Case& of) {
  fill_random(ctx_, of.draw, seed_, u_);
  measure_ = add_and_moments(ctx_, {}, u_, blocks_);
  for (const double density : options_.densities) {
    const double closed = of.closed(density), top = measured(kTopk, density),
                 random = left_of_random(density), drawn = measured(kRandk, density),
                 bound = bell_bound(density);
    fmt::print("{:<9} {:>8} {:>10.6f} {:>10.6f} {:>10.6f} {:>10.6f} {:>10.6f}  {}\n", of.name,
               density, closed, top, random, drawn, bound, top <= bound ? "holds" : "violated");
    if (csv_.is_open())
      csv_.write(fmt::format("{},{},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f}{}\n", of.name, density,
                             closed, top, random, drawn, bound, provenance_cells()));
  }
}

void run_theory(const TheoryOptions& options) {
  fmt::print(
      "||u - S(u)||^2 / ||u||^2 of {} random entries; bound: (1 - rho)^2 for bell-shaped vectors\n"
      "closed: expected value in closed form\n\n"
      "{:<9} {:>8} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
      options.d, "", "", "top-k", "top-k", "rand-k", "rand-k", "");
  fmt::print("{:<9} {:>8} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "u", "rho", "closed", "measured",
             "closed", "measured", "bound");
  TheoryTable table(options);
  for (const Case& of : cases()) table.rows(of);
}

}  // namespace

Subcommand analyze_theory() {
  auto [command, options] = subcommand(
      "theory", "residuals of top-k and rand-k, in closed form and measured", run_theory);
  OptionTable& t = command.table;
  t.group("Vector");
  t.add("d", options->d, "length of the random vector", {.least = 1, .most = UINT32_MAX - 1.0});
  t.add("density", options->densities, "densities, separated by commas",
        {.least = 1e-12, .most = 1});
  t.add("seed", options->seed, "seed of the vector and of rand-k", {.most = 1e18});
  t.add("csv", options->csv, "also write the table to this file", {.traits = kLocal});
  t.group("Machine");
  t.add("threads-per-rank", options->threads, "CPU threads", {.least = 1, .most = 1024});
  return command;
}

}  // namespace tw
