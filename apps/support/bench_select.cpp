#include "apps/support/bench_select.h"

#include <algorithm>
#include <bit>

#include "apps/support/distributions.h"
#include "apps/support/stopwatch.h"
#include "engine/buffer.h"
#include "engine/ops/vector.h"
#include "engine/simd.h"
#include "sparsify/magnitude.h"
#include "sparsify/selector.h"

namespace tw {

namespace {

struct Options {
  size_t d = 25'557'032;  // ResNet-50
  double density = 0.001;
  int threads = 1;
  int repeat = 15;
  std::string distribution = "all";
};

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

TW_MULTIVERSION void triad_range(const float* b, const float* c, float* a, size_t n) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) a[i] = b[i] + 3.0f * c[i];
}

// one selector under test; times of all are taken in turn, so that noise meets all alike
struct Entry {
  std::string name;
  std::unique_ptr<Selector> selector;
  std::vector<double> seconds{};
  SparseVector out{};
};

class SelectBench {
 public:
  explicit SelectBench(const Options& options)
      : options_(options),
        ctx_(Device::cpu, options.threads),
        u_(Device::cpu, options.d * sizeof(float)),
        g_(Device::cpu, options.d * sizeof(float)),
        e_(Device::cpu, options.d * sizeof(float)),
        k_(entries_to_keep(options.density, options.d)) {}

  void run(const std::string& distribution);

 private:
  std::span<float> u() { return u_.as<float>(); }
  std::span<float> g() { return g_.as<float>(); }
  std::span<float> e() { return e_.as<float>(); }

  void make_entries();
  double time_add();
  double time_triad();
  double time_nth_element();
  void time(Entry& entry);
  void check_exact(const Entry& entry);
  double gigabytes_per_second(double seconds) const {
    return 3.0 * sizeof(float) * static_cast<double>(options_.d) / seconds * 1e-9;
  }

  Options options_;
  Context ctx_;
  Buffer u_, g_, e_;
  size_t k_;
  std::vector<Entry> entries_;
  float kth_ = 0;
};

void SelectBench::make_entries() {
  entries_.clear();
  for (const auto& [name, entry] : selectors().entries()) {
    Settings settings;
    settings.declare(name, entry.settings);
    entries_.push_back({name, entry.factory(ctx_, settings)});
    // every other value of every choice, one at a time
    for (const Setting& setting : entry.settings)
      for (const std::string& choice : setting.choices) {
        if (choice == setting.value) continue;
        Settings other = settings;
        other.set(fmt::format("{}.{}", name, setting.key), choice);
        entries_.push_back(
            {fmt::format("{} {}={}", name, setting.key, choice), entry.factory(ctx_, other)});
      }
  }
}

double SelectBench::time_add() {
  std::ranges::copy(g(), e().begin());
  Stopwatch watch;
  ops::add(ctx_, g(), e());
  return watch.lap();
}

// a = b + s c into a third vector: the usual measure of memory bandwidth (McCalpin's STREAM)
double SelectBench::time_triad() {
  Stopwatch watch;
  parallel_for(ctx_, options_.d, 65536, [&](size_t begin, size_t end) {
    triad_range(u().data() + begin, g().data() + begin, e().data() + begin, end - begin);
  });
  return watch.lap();
}

double SelectBench::time_nth_element() {
  std::vector<float> magnitudes(options_.d);
  std::ranges::transform(u(), magnitudes.begin(), [](float x) { return std::abs(x); });
  const size_t k = std::min(k_, options_.d);
  Stopwatch watch;
  const auto kth = magnitudes.begin() + static_cast<ptrdiff_t>(k - 1);
  std::nth_element(magnitudes.begin(), kth, magnitudes.end(), std::greater<>());
  const double seconds = watch.lap();
  kth_ = *kth;
  return seconds;
}

void SelectBench::time(Entry& entry) {
  std::ranges::copy(g(), e().begin());
  entry.out.count = 0;
  Stopwatch watch;
  entry.selector->select(ctx_, g(), e(), k_, 0, entry.out);
  entry.seconds.push_back(watch.lap());
}

// what is timed must be right: nothing sent lies below the k-th magnitude
void SelectBench::check_exact(const Entry& entry) {
  const bool exact =
      entry.out.count == std::min(k_, options_.d) &&
      std::ranges::all_of(entry.out.value_span(), [&](float x) { return std::abs(x) >= kth_; });
  check<Fault>(entry.name != "topk" || exact, "[bench] topk is not exact");
}

void SelectBench::run(const std::string& distribution) {
  fill_random(ctx_, distributions().at(distribution), 1, u());
  // u = g + e with both alike: every measured step sees the very u of this distribution
  std::ranges::transform(u(), g().begin(), [](float x) { return x / 2; });
  make_entries();

  std::vector<double> add, triad, sort;
  for (int i = -1; i < options_.repeat; ++i) {
    triad.push_back(time_triad());
    add.push_back(time_add());
    for (Entry& entry : entries_) time(entry);
    if (i < 0) {  // the first round touches memory for the first time
      add.clear();
      triad.clear();
      for (Entry& entry : entries_) entry.seconds.clear();
    }
  }
  for (int i = 0; i < std::min(3, options_.repeat); ++i) sort.push_back(time_nth_element());

  const double base = median(add);
  const auto row = [&](const std::string& name, double seconds, double sent) {
    fmt::print("{:<24} {:<10} {:>9.2f} {:>8.1f} {:>9.2f} {:>8.3f}\n", name, distribution,
               seconds * 1e3, gigabytes_per_second(seconds), seconds / base, sent);
  };
  row("triad", median(triad), 0);
  row("e += g", base, 0);
  for (const Entry& entry : entries_) {
    check_exact(entry);
    row(entry.name, median(entry.seconds),
        static_cast<double>(entry.out.count) / static_cast<double>(k_));
  }
  row("std::nth_element", median(sort), 1);
  fmt::print("e += g runs at {:.2f} of triad bandwidth\n", median(triad) / base);
}

void run_bench(const Options& options) {
  fmt::print(
      "selection with error feedback: u = g + e, select, residual cleared, indices and values out\n"
      "d {}  density {}  k {}  threads {}  median of {}; ms, GB/s of the 12 bytes an element that\n"
      "e += g moves, time over that of e += g, entries sent over k\n"
      "std::nth_element: the k-th magnitude alone, one thread, from a copy made untimed\n\n",
      options.d, options.density, entries_to_keep(options.density, options.d), options.threads,
      options.repeat);
  fmt::print("{:<24} {:<10} {:>9} {:>8} {:>9} {:>8}\n", "selector", "u", "ms", "GB/s", "/ e += g",
             "nnz/k");
  SelectBench bench(options);
  for (const auto& [name, draw] : distributions())
    if (options.distribution == name || options.distribution == "all") bench.run(name);
}

}  // namespace

void add_bench_select(CLI::App& app) {
  CLI::App* command = app.add_subcommand("select", "selection with error feedback");
  const auto options = std::make_shared<Options>();
  std::vector<std::string> names{"all"};
  for (const auto& [name, draw] : distributions()) names.push_back(name);
  command->add_option("--d", options->d, "elements")
      ->capture_default_str()
      ->check(CLI::Range(size_t{1}, size_t{UINT32_MAX}));
  command->add_option("--density", options->density, "entries asked for over elements")
      ->capture_default_str()
      ->check(CLI::Range(1e-12, 1.0));
  command->add_option("--threads", options->threads)
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command->add_option("--repeat", options->repeat, "measured rounds")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  command->add_option("--distribution", options->distribution, "of u")
      ->capture_default_str()
      ->check(CLI::IsMember(names));
  command->callback([options] { run_bench(*options); });
}

}  // namespace tw
