#include <algorithm>
#include <functional>
#include <memory>

#include "apps/bench/subcommands.h"
#include "apps/common/distributions.h"
#include "apps/common/measurements.h"
#include "apps/common/outputs.h"
#include "apps/common/resolve.h"
#include "apps/common/vector_file.h"
#include "apps/common/version.h"
#include "engine/core/buffer.h"
#include "engine/core/copy.h"
#include "engine/core/stopwatch.h"
#include "engine/device/event.h"
#include "engine/io/file.h"
#include "engine/ops/vector.h"
#include "sparsify/selector.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tw {

namespace {

struct SelectOptions {
  int64_t d = 25'557'032;  // ResNet-50
  int64_t threads = 1, iterations = 15;
  double density = kDensity;
  std::string distribution = "all", from, tensor, csv;
  Device device = Device::cpu;
};

void triad_range(const float* b, const float* c, float* a, size_t n) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) a[i] = b[i] + 3.0f * c[i];
}

// the same with stores that do not read the line they overwrite
void streaming_triad_range(const float* b, const float* c, float* a, size_t n) {
#if defined(__x86_64__)
  const __m128 scale = _mm_set1_ps(3.0f);
  size_t i = 0;
  for (; i < n && reinterpret_cast<uintptr_t>(a + i) % 16 != 0; ++i) a[i] = b[i] + 3.0f * c[i];
  for (; i + 4 <= n; i += 4)
    _mm_stream_ps(a + i, _mm_add_ps(_mm_loadu_ps(b + i), _mm_mul_ps(scale, _mm_loadu_ps(c + i))));
  for (; i < n; ++i) a[i] = b[i] + 3.0f * c[i];
  _mm_sfence();
#else
  triad_range(b, c, a, n);
#endif
}

/// An operation and its seconds in each round.
struct Series {
  std::string name;
  double bytes_each = 3 * sizeof(float);  ///< read and written for an element; 0 where unknown
  std::function<double()> time{};         ///< runs it once; returns its seconds
  std::function<double()> sent = [] { return 0.0; };  ///< entries by k; Fault if they are wrong
  std::vector<double> seconds{};
};

/// Of two series, round by round: a slow moment of the machine slows both.
double median_ratio(const Series& a, const Series& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.seconds.size(), b.seconds.size()); ++i)
    ratios.push_back(a.seconds[i] / b.seconds[i]);
  return median(ratios);
}

class SelectBench {
 public:
  explicit SelectBench(const SelectOptions& options)
      : options_(options),
        host_(Device::cpu, static_cast<int>(options.threads)),
        ctx_(options.device, host_.threads()),
        timer_(DeviceTimer::create(ctx_)),
        read_(options.from.empty() ? std::vector<float>()
                                   : read_vector(options.from, options.tensor)),
        d_(read_.empty() ? static_cast<size_t>(options.d) : read_.size()),
        u_(Device::cpu, d_ * sizeof(float)),
        g_(ctx_.device(), u_.bytes()),
        e_(ctx_.device(), u_.bytes()),
        k_(entries_to_keep(options.density, d_)) {
    csv_ = result_table(
        options.csv,
        "device,distribution,d,density,selector,seconds,best_seconds,gb_s,of_add,nnz_over_k");
  }

  void run(const std::string& distribution);
  size_t d() const { return d_; }

 private:
  std::span<float> u() { return u_.as<float>(); }
  std::span<float> g() { return g_.as<float>(); }
  std::span<float> e() { return e_.as<float>(); }

  void draw(const std::string& distribution);
  void reset();
  using Triad = void(const float*, const float*, float*, size_t);
  Series triad(const char* name, Triad* body);
  Series selection(const std::string& name, const SelectorEntry& selector,
                   const Settings& settings);
  void add_selectors(std::vector<Series>& all);
  double time_nth_element();
  void print_row(const std::string& distribution, const Series& series, const Series& add);

  SelectOptions options_;
  Context host_, ctx_;
  std::unique_ptr<DeviceTimer> timer_;
  std::vector<float> read_;  // of a file; empty: drawn
  size_t d_;
  Buffer u_, g_, e_;  // u on the host
  size_t k_;
  size_t nonzero_ = 0;  // entries of u
  float kth_ = 0;
  GrowingFile csv_;
};

void SelectBench::reset() {
  const Shape flat{static_cast<int64_t>(d_)};
  copy(ctx_, g_.tensor(flat, DType::f32), e_.tensor(flat, DType::f32));
}

/// a = b + s c into a third vector: the usual measure of memory bandwidth (McCalpin's STREAM).
Series SelectBench::triad(const char* name, Triad* body) {
  return {.name = name, .time = [this, body] {
            Stopwatch watch;
            parallel_for(host_, d_, 65536, [&](size_t begin, size_t end) {
              body(u().data() + begin, g().data() + begin, e().data() + begin, end - begin);
            });
            return watch.lap();
          }};
}

/// Selectors that are exact must send k entries, none below the k-th magnitude.
Series SelectBench::selection(const std::string& name, const SelectorEntry& entry,
                              const Settings& settings) {
  const std::shared_ptr<Selector> selector = entry(ctx_, settings, {});
  const auto out = std::make_shared<SparseVector>();
  return {.name = name,
          .time =
              [this, selector, out] {
                reset();
                out->count = 0;
                timer_->start();
                selector->select(ctx_, {.g = g(), .e = e(), .k = k_, .density = options_.density},
                                 *out);
                return timer_->stop();
              },
          .sent =
              [this, name, exact = entry.exact, out] {
                const auto below = [&](float x) { return std::abs(x) < kth_; };
                check<Fault>(!exact || (out->count == std::min(k_, nonzero_) &&
                                        std::ranges::none_of(out->value_span(), below)),
                             "[bench] {} is not exact", name);
                return static_cast<double>(out->count) / static_cast<double>(k_);
              }};
}

/// Every selector with its default settings, and with every other value of every choice.
void SelectBench::add_selectors(std::vector<Series>& all) {
  for (const auto& [name, selector] : selectors().entries()) {
    Settings settings;
    settings.declare(name, selector.settings);
    all.push_back(selection(name, selector.value, settings));
    for (const Setting& setting : selector.settings)
      for (const std::string& choice : setting.choices) {
        if (choice == setting.value) continue;
        Settings other = settings;
        other.set(fmt::format("{}.{}", name, setting.key), choice);
        all.push_back(
            selection(fmt::format("{} {}={}", name, setting.key, choice), selector.value, other));
      }
  }
}

double SelectBench::time_nth_element() {
  std::vector<float> magnitudes(d_);
  std::ranges::transform(u(), magnitudes.begin(), [](float x) { return std::abs(x); });
  const size_t k = std::min(k_, d_);
  Stopwatch watch;
  const auto kth = magnitudes.begin() + static_cast<ptrdiff_t>(k - 1);
  std::nth_element(magnitudes.begin(), kth, magnitudes.end(), std::greater<>());
  const double seconds = watch.lap();
  kth_ = *kth;
  return seconds;
}

// u = g + e with g = e = u / 2, so that every measured step selects from u itself
void SelectBench::draw(const std::string& distribution) {
  if (read_.empty())
    fill_by_name(host_, distribution, 1, u());
  else
    std::ranges::copy(read_, u().begin());
  nonzero_ = d_ - static_cast<size_t>(std::ranges::count(u(), 0.0f));
  std::vector<float> half(d_);
  std::ranges::transform(u(), half.begin(), [](float x) { return x / 2; });
  copy_to_device(ctx_, half, g());
}

void SelectBench::run(const std::string& distribution) {
  draw(distribution);
  const bool on_cpu = ctx_.device() == Device::cpu;
  std::vector<Series> all;
  if (on_cpu) {
    all.push_back(triad("triad", triad_range));
    all.push_back(triad("triad streaming", streaming_triad_range));
  } else {
    all.push_back({.name = "copy", .bytes_each = 2 * sizeof(float), .time = [this] {
                     timer_->start();
                     reset();
                     return timer_->stop();
                   }});
  }
  const size_t added = all.size();
  all.push_back({.name = "e += g", .time = [this] {
                   reset();
                   timer_->start();
                   ops::add(ctx_, g(), e());
                   return timer_->stop();
                 }});
  add_selectors(all);

  // they take turns, so that noise affects all
  for (int64_t round = -1; round < options_.iterations; ++round)
    for (Series& series : all) {
      const double seconds = series.time();
      if (round >= 0) series.seconds.push_back(seconds);  // the first touches the memory
    }
  Series sort{.name = "std::nth_element", .bytes_each = 0, .sent = [] { return 1.0; }};
  for (int64_t round = 0; round < std::min<int64_t>(3, options_.iterations); ++round)
    sort.seconds.push_back(time_nth_element());

  const Series& add = all[added];
  for (const Series& series : all) print_row(distribution, series, add);
  print_row(distribution, sort, add);
  const double counted = median_ratio(all.front(), add);
  if (!on_cpu) {
    fmt::print("e += g: {:.0f} GB/s, {:.2f} of the rate of a copy\n\n",
               12e-9 * static_cast<double>(d_) / median(add.seconds), 1.5 * counted);
    return;
  }
  fmt::print(
      "rate of e += g (12 bytes per element), relative to\n"
      "  triad: {:.2f} at 12 bytes per element, {:.2f} at 16, with the write-allocate reads\n"
      "  triad with streaming stores: {:.2f}\n\n",
      counted, counted * 12 / 16, median_ratio(all[1], add));
}

void SelectBench::print_row(const std::string& distribution, const Series& series,
                            const Series& add) {
  const double seconds = median(series.seconds), best = std::ranges::min(series.seconds);
  const double bytes = series.bytes_each * static_cast<double>(d_);
  const double of_add = median_ratio(series, add), sent = series.sent();
  const std::string speed = bytes > 0 ? fmt::format("{:.1f}", bytes / seconds * 1e-9) : "";
  fmt::print("{:<24} {:<10} {:>8.3f} {:>8.3f} {:>7} {:>9.2f} {:>7.3f}\n", series.name, distribution,
             seconds * 1e3, best * 1e3, speed.empty() ? "-" : speed, of_add, sent);
  if (!csv_.is_open()) return;
  csv_.write(fmt::format("{},{},{},{},{},{:.9f},{:.9f},{},{:.4f},{:.6f}{}\n", word(options_.device),
                         distribution, d_, options_.density, series.name, seconds, best, speed,
                         of_add, sent, provenance_cells()));
}

void run_select(const SelectOptions& options) {
  const bool from = !options.from.empty();
  check(!from || (options.d == SelectOptions{}.d && options.distribution == "all"),
        "[bench] from names a vector; it excludes d and distribution");
  check(from || options.tensor.empty(), "[bench] tensor needs from, which has tensors");
  SelectBench bench(options);  // before the output: throws when there is no such device
  fmt::print(
      "selection with error feedback: u = g + e, select, residual cleared, indices and values out\n"
      "d {}  density {}  k {}  {}  threads {}  rounds {}\n"
      "ms: median; best; GB/s: at 12 bytes per element; ratio to e += g, median over rounds;\n"
      "std::nth_element: finds the k-th magnitude only, on one thread; its copy of u is not "
      "timed\n\n",
      bench.d(), options.density, entries_to_keep(options.density, bench.d()), word(options.device),
      options.threads, options.iterations);
  fmt::print("{:<24} {:<10} {:>8} {:>8} {:>7} {:>9} {:>7}\n", "selector", "u", "ms", "best", "GB/s",
             "/ e += g", "nnz/k");
  if (from) return bench.run("file");
  for (const std::string& name : vector_names())
    if (options.distribution == name || options.distribution == "all") bench.run(name);
}

}  // namespace

Subcommand bench_select() {
  auto [command, options] =
      subcommand("select", "selection with error feedback, by every selector", run_select);
  OptionTable& t = command.table;
  std::vector<std::string> names = vector_names();
  names.insert(names.begin(), "all");
  t.group("Vector");
  t.add("d", options->d, "elements", {.least = 1, .most = UINT32_MAX});
  t.add("density", options->density, "share of the elements to select",
        {.least = 1e-12, .most = 1});
  t.add("distribution", options->distribution,
        "distribution of the elements; layers, spike: not all alike", {.choices = names});
  t.add("from", options->from,
        "the vector of a file in place of drawn ones: .npy, or safetensors such as those of train "
        "--save-gradients",
        {.traits = kLocal});
  t.add("tensor", options->tensor, "name of the tensor in a safetensors file with several");
  t.group("Machine");
  t.add("device", options->device, "device of the selection");
  t.add("threads-per-rank", options->threads, "CPU threads", {.least = 1, .most = 1024});
  t.group("Measurement");
  t.add("iterations", options->iterations, "measured rounds; prints medians",
        {.least = 1, .most = 100000});
  t.add("csv", options->csv, "also write the table to this file", {.traits = kLocal});
  return command;
}

}  // namespace tw
