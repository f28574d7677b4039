#include <algorithm>
#include <memory>
#include <optional>

#include "apps/bench/comm_cases.h"
#include "apps/bench/subcommands.h"
#include "apps/common/comm_setup.h"
#include "apps/common/launch.h"
#include "apps/common/measurements.h"
#include "apps/common/outputs.h"
#include "apps/common/rank_utils.h"
#include "apps/common/resolve.h"
#include "apps/common/version.h"
#include "comm/collectives/measure_link.h"
#include "comm/cost_model.h"
#include "comm/transports.h"
#include "engine/io/file.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

struct CommBenchOptions {
  int64_t min_bytes = 1 << 10, max_bytes = 16 << 20;
  double factor = 4, density = kDensity;
  int64_t iterations = 10, calls = 1, warmup = 2, workers = 0, root = 0;
  std::string collective = "all", implementation = "all", csv;
  Device device = Device::cpu;
  CommOptions comm;
  bool simulate = false;
  Settings settings = default_settings();
};

/// One line of the table.
struct Row {
  size_t bytes = 0, wrong = 0;
  double seconds = 0;  ///< median over iterations of the slowest rank's
  double sent = 0;     ///< bytes that all ranks sent in one call
};

class CommBench {
 public:
  /// `link`: the emulated one, or null.
  CommBench(Communicator& comm, const CommBenchOptions& options, const Topology* link)
      : options_(options), ctx_(options.device, 1, comm.gpu()), comm_(comm), link_(link) {}

  /// Prints the table; throws CollectiveFault when elements are wrong.
  void run();

 private:
  /// The mean of several calls back to back: seconds on the slowest rank, bytes of all ranks.
  struct Call {
    double seconds = 0, bytes = 0;
  };
  Call call(const CommCase& test, size_t n, int64_t times);
  Row measure(const CommCase& test, size_t n);
  void print(const CommCase& test, const Row& row, double model);

  template <class... Args>
  void print_on_rank_0(fmt::format_string<Args...> text, Args&&... args) const {
    if (comm_.rank() == 0) fmt::print("{}", fmt::format(text, std::forward<Args>(args)...));
  }

  const CommBenchOptions& options_;
  Context ctx_;
  Communicator& comm_;
  const Topology* link_;
  std::optional<CommVectors> vectors_;
  GrowingFile csv_;
};

CommBench::Call CommBench::call(const CommCase& test, size_t n, int64_t times) {
  test.fill(ctx_, comm_, *vectors_, n);  // repeated sums would overflow
  ctx_.synchronize();
  barrier(comm_);
  const uint64_t before = comm_.bytes_sent();
  const double start = comm_.now();
  for (int64_t i = 0; i < times; ++i) test.run(ctx_, comm_, *vectors_, n);
  ctx_.synchronize();
  const Call mine{(comm_.now() - start) / static_cast<double>(times),
                  static_cast<double>(comm_.bytes_sent() - before) / static_cast<double>(times)};
  Call all;
  for (const Call& one : gather(comm_, mine)) {
    all.seconds = std::max(all.seconds, one.seconds);
    all.bytes += one.bytes;
  }
  return all;
}

Row CommBench::measure(const CommCase& test, size_t n) {
  Row row{.bytes = n * sizeof(float)};
  call(test, n, 1);  // checked, not timed
  const size_t wrong = test.wrong(ctx_, comm_, *vectors_, n);
  for (const size_t w : gather(comm_, wrong)) row.wrong += w;
  for (int64_t i = 1; i < options_.warmup; ++i) call(test, n, 1);

  std::vector<double> seconds;
  for (int64_t i = 0; i < options_.iterations; ++i) {
    const Call one = call(test, n, options_.calls);
    seconds.push_back(one.seconds);
    row.sent = one.bytes;
  }
  row.seconds = median(seconds);
  return row;
}

/// A number, or - when there is none.
std::string cell(double value, const char* form) {
  return value > 0 ? fmt::format(fmt::runtime(form), value) : "-";
}

void CommBench::print(const CommCase& test, const Row& row, double model) {
  // messages inside a node take no simulated time
  const double algbw = row.seconds > 0 ? static_cast<double>(row.bytes) / row.seconds : 0,
               busbw = algbw * test.bus;
  print_on_rank_0("{:<10} {:<22} {:>11} {:>11} {:>10.1f} {:>9} {:>9} {:>12} {:>10} {:>7}\n",
                  test.collective, test.algorithm, row.bytes, row.bytes / sizeof(float),
                  row.seconds * 1e6, cell(algbw * 1e-9, "{:.4f}"), cell(busbw * 1e-9, "{:.4f}"),
                  test.by_library ? "-" : cell(row.sent, "{:.0f}"), cell(model * 1e6, "{:.1f}"),
                  row.wrong);
  if (csv_.is_open())
    csv_.write(fmt::format(
        "{},{},{},{},{},{:.9f},{},{:.0f},{},{}{}\n", test.collective, test.algorithm,
        comm_.transport(), comm_.size(), row.bytes, row.seconds,
        algbw > 0 ? fmt::format("{:.6f},{:.6f}", algbw * 1e-9, busbw * 1e-9) : ",", row.sent,
        model > 0 ? fmt::format("{:.9f}", model) : "", row.wrong, provenance_cells()));
}

void CommBench::run() {
  const Settings& settings = options_.settings;
  std::vector<CommCase> cases;
  run_collectively(comm_, [&] {
    check(options_.root < comm_.size(), "[bench] root is {}; there are {} ranks", options_.root,
          comm_.size());
    check(options_.min_bytes <= options_.max_bytes,
          "[bench] min-bytes is {}, more than max-bytes, which is {}", options_.min_bytes,
          options_.max_bytes);
    cases = dense_cases(settings, comm_, static_cast<int>(options_.root));
    std::ranges::move(sparse_cases(settings, options_.density), std::back_inserter(cases));
    std::ranges::move(low_rank_cases(settings), std::back_inserter(cases));
    std::erase_if(cases, [&](const CommCase& c) {
      return (options_.collective != "all" && options_.collective != c.collective) ||
             (options_.implementation != "all" && options_.implementation != c.algorithm &&
              std::ranges::find(c.aliases, options_.implementation) == c.aliases.end());
    });
    check(!cases.empty(), "[bench] no collective {} has an implementation {} on the transport {}",
          options_.collective, options_.implementation, comm_.transport());
    if (comm_.rank() == 0)
      csv_ = result_table(options_.csv,
                          "collective,algorithm,transport,ranks,bytes,seconds,algbw_gb_s,"
                          "busbw_gb_s,wire_bytes,model_seconds,wrong");
  });
  const size_t most = static_cast<size_t>(options_.max_bytes) / sizeof(float);
  run_collectively(comm_, [&] { vectors_.emplace(ctx_, most); });

  const LinkCost link = link_ ? link_->cost(comm_.size()) : measure_link(ctx_, comm_);
  const bool modelled = !link_ || link_->ranks_per_node == 1;  // formulas know no shared ports
  LinkCost additions;  // 1,024 simulated ranks would take 8 GiB for it
  if (!options_.simulate)
    additions = measure_additions(ctx_, comm_, most, options_.density);
  else if (comm_.rank() == 0)
    additions = measure_additions(ctx_, *make_self_communicator(), most, options_.density);
  print_on_rank_0(
      "{} ranks over {}, vectors on {}; {} link: alpha {:.1f} us per message, {:.4f} GB/s\n"
      "us: median of {} x {} calls back to back, on the slowest rank; algbw: size / time;\n"
      "busbw: algbw x the load of the busiest port, 2(P-1)/P for allreduce, (P-1)/P for allgather\n"
      "(size: that of the result), 1 for broadcast and reduce; bytes: sent by all ranks;\n"
      "model: us by the cost model at this alpha and bandwidth, without additions;\n"
      "additions here: gamma {:.3f} ns per added element, merge {:.3f} ns per sparse entry\n\n"
      "{:<10} {:<22} {:>11} {:>11} {:>10} {:>9} {:>9} {:>12} {:>10} {:>7}\n",
      comm_.size(), comm_.transport(), word(options_.device), link_ ? "the" : "slowest",
      link.alpha * 1e6, 4e-9 / std::max(link.beta, 1e-15), options_.iterations, options_.calls,
      additions.gamma * 1e9, additions.merge * 1e9, "collective", "by", "size B", "count", "us",
      "algbw", "busbw", "bytes", "model us", "#wrong");
  size_t wrong = 0;
  for (const CommCase& test : cases)
    for (double bytes = static_cast<double>(options_.min_bytes);
         bytes <= static_cast<double>(options_.max_bytes); bytes *= options_.factor) {
      const size_t n = static_cast<size_t>(bytes) / sizeof(float);
      const Row row = measure(test, n);
      print(test, row, modelled ? test.cost(link, comm_.size(), static_cast<double>(n)) : 0);
      wrong += row.wrong;
    }
  check<CollectiveFault>(wrong == 0, "[bench] {} elements are wrong", wrong);
}

/// Runs the benchmark on one rank, over the transport and link of the options.
void run_on(Communicator& comm, const CommBenchOptions& options) {
  CommSetup setup(comm, options.comm, options.simulate ? LinkTime::simulated : LinkTime::real);
  if (comm.rank() == 0 && !setup.notice().empty()) fmt::print("{}\n", setup.notice());
  const Topology* link = setup.link() != nullptr ? &setup.link()->topology() : nullptr;
  CommBench(setup.comm(), options, link).run();
}

void run_comm(Communicator& world, CommBenchOptions options) {
  options.comm.read_link(options.settings);
  check_ranks(world, options.workers);
  check_transport(options.comm, options.device);
  check(!options.simulate || !options.comm.link.empty(),
        "[bench] a simulated clock needs a link to simulate; add --link, e.g. 1Gbit,0.4ms");
  if (options.workers <= 1)
    run_on(world, options);
  else
    run_on_threads(static_cast<int>(options.workers),
                   [&](Communicator& comm) { run_on(comm, options); });
}

}  // namespace

Subcommand bench_comm(Communicator& world) {
  const auto options = std::make_shared<CommBenchOptions>();
  Subcommand command{
      .name = "comm",
      .help = "collectives: every implementation over a range of sizes, checked, then timed",
      .table = {},
      .run = [options, &world] { run_comm(world, *options); }};
  OptionTable& t = command.table;
  constexpr double kMost = 1e6, kMostBytes = 1e12;
  t.group("Sizes");
  t.add("min-bytes", options->min_bytes, "smallest size, e.g. 4K",
        {.least = sizeof(float), .most = kMostBytes, .letter = 'b', .size_units = true});
  t.add("max-bytes", options->max_bytes, "largest size, e.g. 64M",
        {.least = sizeof(float), .most = kMostBytes, .letter = 'e', .size_units = true});
  t.add("factor", options->factor, "ratio of successive sizes",
        {.least = 1.01, .most = kMost, .letter = 'f'});

  t.group("Collectives");
  t.add(
      "collective", options->collective, "which collectives to measure",
      {.choices = {"all", "broadcast", "reduce", "allreduce", "allgather", "sparse", "low_rank"}});
  t.add("implementation", options->implementation,
        "all, or the name of a dense collective, bruck (allgather), or an exchange");
  t.add("density", options->density, "density of the sparse exchanges", {.least = 1e-9, .most = 1});
  t.add("root", options->root, "root of broadcast and reduce", {.most = kMost});
  t.add_settings(options->settings);

  t.group("Ranks and link");
  t.add("workers", options->workers, "ranks, as threads of this process; 0: 1, or mpirun's -n",
        {.most = 4096});
  t.add("device", options->device, "memory of the vectors; ranks that are threads share a GPU");
  options->comm.add_to(t);
  t.add("simulated-clock", options->simulate,
        "compute the seconds of the emulated link instead of waiting for them");

  t.group("Measurement");
  t.add("iterations", options->iterations, "measurements; prints their median",
        {.least = 1, .most = kMost, .letter = 'n'});
  t.add("calls", options->calls,
        "calls back to back in one measurement, e.g. to drain a link's token bucket",
        {.least = 1, .most = kMost, .letter = 'c'});
  t.add("warmup", options->warmup, "calls before the measurements; checks the result of the first",
        {.least = 1, .most = kMost, .letter = 'w'});
  t.add("csv", options->csv, "also write the table to this file", {.traits = kLocal});
  return command;
}

}  // namespace tw
