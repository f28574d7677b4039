#include "apps/support/bench_comm.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>

#include "apps/support/launch.h"
#include "apps/support/median.h"
#include "apps/support/together.h"
#include "comm/cost_model.h"
#include "comm/link.h"
#include "comm/ping_pong.h"
#include "comm/transports.h"

namespace tw {

namespace {

struct Options {
  size_t min_bytes = 1 << 10, max_bytes = 16 << 20;
  double factor = 4;
  int iterations = 10, warmup = 2, workers = 0, root = 0;
  std::string collective = "all", algorithm = "all", csv, link;
  int ranks_per_node = 1;
  bool simulate = false;
  std::vector<std::string> set;
};

/// The vectors of one rank; a collective works on the first elements.
struct Vectors {
  std::vector<float> data, scratch;
  GatheredBlocks blocks;
};

/// Small integers, so that sums are exact whatever their order; other ones on every rank.
float number(int rank, size_t i) {
  return static_cast<float>(static_cast<int>((i * 7 + static_cast<size_t>(rank) * 13) % 101) - 50);
}

/// One collective by one algorithm.
struct Case {
  std::string collective, algorithm;
  std::function<void(Context&, Communicator&, Vectors&, std::span<float>)> run;
  /// What element i must be on `rank` afterwards, when that is defined.
  std::function<bool(const Communicator&, const Vectors&, size_t i)> right;
  double bus = 1;            ///< busbw / algbw: what the busiest port must carry, in sizes
  DenseCost cost = nullptr;  ///< by the model; none for a black box
};

template <class Costs>
DenseCost cost_of(const Costs& costs, const std::string& name) {
  const auto found = costs.find(name);
  return found == costs.end() ? nullptr : found->second;
}

float sum_at(const Communicator& comm, size_t i) {
  float sum = 0;
  for (int rank = 0; rank < comm.size(); ++rank) sum += number(rank, i);
  return sum;
}

double allgather_cost(const Wire& wire, int ranks, double n) {
  const double rounds = std::ceil(std::log2(static_cast<double>(ranks)));
  return rounds * wire.alpha + (ranks - 1.0) / ranks * n * wire.beta;
}

std::vector<Case> all_cases(const Settings& settings, const Communicator& comm, int root) {
  const bool mpi = std::string_view(comm.transport()) == "mpi";
  const double others = (comm.size() - 1.0) / comm.size();
  std::vector<Case> cases;
  for (const auto& [name, entry] : broadcasts().entries()) {
    if (name == "native" && !mpi) continue;
    cases.push_back({"broadcast", name,
                     [run = entry.factory(settings), root](Context& ctx, Communicator& c, Vectors&,
                                                           std::span<float> data) {
                       run(ctx, c, root, std::as_writable_bytes(data));
                     },
                     [root](const Communicator&, const Vectors& v, size_t i) {
                       return v.data[i] == number(root, i);
                     },
                     1, cost_of(broadcast_costs(), name)});
  }
  for (const auto& [name, entry] : reduces().entries()) {
    if (name == "native" && !mpi) continue;
    cases.push_back({"reduce", name,
                     [run = entry.factory(settings), root](Context& ctx, Communicator& c,
                                                           Vectors& v, std::span<float> data) {
                       run(ctx, c, root, data, v.scratch);
                     },
                     [root](const Communicator& c, const Vectors& v, size_t i) {
                       return c.rank() != root || v.data[i] == sum_at(c, i);
                     },
                     1, cost_of(reduce_costs(), name)});
  }
  for (const auto& [name, entry] : allreduces().entries()) {
    if (name == "native" && !mpi) continue;
    cases.push_back(
        {"allreduce", name,
         [run = entry.factory(settings)](Context& ctx, Communicator& c, Vectors& v,
                                         std::span<float> data) { run(ctx, c, data, v.scratch); },
         [](const Communicator& c, const Vectors& v, size_t i) {
           return v.data[i] == sum_at(c, i);
         },
         2 * others, cost_of(allreduce_costs(), name)});
  }
  cases.push_back({"allgather", "bruck",
                   [](Context& ctx, Communicator& c, Vectors& v, std::span<float> data) {
                     const ConstBytes mine = std::as_bytes(data.first(data.size() / c.size()));
                     allgather(ctx, c, mine, mine.size(), v.blocks);
                   },
                   [](const Communicator& c, const Vectors& v, size_t i) {
                     for (int rank = 0; rank < c.size(); ++rank) {
                       if (i * sizeof(float) >= v.blocks[rank].size()) return true;
                       float x = 0;
                       std::memcpy(&x, v.blocks[rank].data() + i * sizeof(float), sizeof x);
                       if (x != number(rank, i)) return false;
                     }
                     return true;
                   },
                   others, allgather_cost});
  return cases;
}

/// What one line of the table says.
struct Row {
  size_t bytes = 0, wrong = 0;
  double seconds = 0;  ///< median over iterations of the slowest rank's
  double sent = 0;     ///< bytes put on the wire by all ranks, an iteration
};

class CommBench {
 public:
  /// `link`: what the emulated link costs, when there is one.
  CommBench(Communicator& comm, const Options& options, const std::optional<Wire>& link)
      : options_(options), ctx_(Device::cpu, 1), comm_(comm), link_(link) {}

  /// Prints the table; how many elements were wrong.
  size_t run();

 private:
  /// One call: seconds on the slowest rank, bytes put on the wire by all.
  struct Call {
    double seconds = 0, bytes = 0;
  };
  Call call(const Case& test, size_t n);
  Row measure(const Case& test, size_t n);
  void print(const Case& test, const Row& row, double model);

  template <class... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) const {
    if (comm_.rank() == 0) fmt::print("{}", fmt::format(text, std::forward<Args>(args)...));
  }

  const Options& options_;
  Context ctx_;
  Communicator& comm_;
  std::optional<Wire> link_;
  Vectors vectors_;
  std::ofstream csv_;
};

CommBench::Call CommBench::call(const Case& test, size_t n) {
  const std::span<float> data = std::span(vectors_.data).first(n);
  for (size_t i = 0; i < n; ++i) data[i] = number(comm_.rank(), i);  // sums of sums would overflow
  barrier(ctx_, comm_);
  const uint64_t before = comm_.bytes_sent();
  const double start = comm_.now();
  test.run(ctx_, comm_, vectors_, data);
  const Call mine{comm_.now() - start, static_cast<double>(comm_.bytes_sent() - before)};
  Call all;
  for (const Call& one : gather(ctx_, comm_, mine)) {
    all.seconds = std::max(all.seconds, one.seconds);
    all.bytes += one.bytes;
  }
  return all;
}

Row CommBench::measure(const Case& test, size_t n) {
  Row row{.bytes = n * sizeof(float)};
  call(test, n);  // right first, then fast
  size_t wrong = 0;
  for (size_t i = 0; i < n; ++i) wrong += !test.right(comm_, vectors_, i);
  for (const size_t w : gather(ctx_, comm_, wrong)) row.wrong += w;
  for (int i = 1; i < options_.warmup; ++i) call(test, n);

  std::vector<double> seconds;
  for (int i = 0; i < options_.iterations; ++i) {
    const Call one = call(test, n);
    seconds.push_back(one.seconds);
    row.sent = one.bytes;
  }
  row.seconds = median(seconds);
  return row;
}

/// A cell that may have nothing to say.
std::string cell(double value, const char* form) {
  return value > 0 ? fmt::format(fmt::runtime(form), value) : "-";
}

void CommBench::print(const Case& test, const Row& row, double model) {
  const double algbw = static_cast<double>(row.bytes) / row.seconds, busbw = algbw * test.bus;
  say("{:<10} {:<7} {:>11} {:>11} {:>10.1f} {:>9.4f} {:>9.4f} {:>12} {:>10} {:>7}\n",
      test.collective, test.algorithm, row.bytes, row.bytes / sizeof(float), row.seconds * 1e6,
      algbw * 1e-9, busbw * 1e-9, test.algorithm == "native" ? "-" : cell(row.sent, "{:.0f}"),
      cell(model * 1e6, "{:.1f}"), row.wrong);
  if (csv_.is_open())
    csv_ << fmt::format("{},{},{},{},{},{:.9f},{:.6f},{:.6f},{:.0f},{},{}\n", test.collective,
                        test.algorithm, comm_.transport(), comm_.size(), row.bytes, row.seconds,
                        algbw * 1e-9, busbw * 1e-9, row.sent,
                        model > 0 ? fmt::format("{:.9f}", model) : "", row.wrong)
         << std::flush;
}

size_t CommBench::run() {
  Settings settings = collective_settings();
  std::vector<Case> cases;
  agree(ctx_, comm_, [&] {
    for (const std::string& assignment : options_.set) settings.set_assignment(assignment);
    check(options_.root < comm_.size(), "[bench] root is {}; there are {} ranks", options_.root,
          comm_.size());
    check(options_.min_bytes <= options_.max_bytes,
          "[bench] -b is {} and -e is {}; nothing between", options_.min_bytes, options_.max_bytes);
    cases = all_cases(settings, comm_, options_.root);
    std::erase_if(cases, [&](const Case& c) {
      return (options_.collective != "all" && options_.collective != c.collective) ||
             (options_.algorithm != "all" && options_.algorithm != c.algorithm);
    });
    check(!cases.empty(), "[bench] there is no {} by {} on the transport {}", options_.collective,
          options_.algorithm, comm_.transport());
    if (comm_.rank() == 0 && !options_.csv.empty()) {
      csv_.open(options_.csv);
      check(csv_.is_open(), "[bench] cannot write {}", options_.csv);
      csv_ << "collective,algorithm,transport,ranks,bytes,seconds,algbw_gb_s,busbw_gb_s,wire_bytes,"
              "model_seconds,wrong\n";
    }
  });
  const size_t most = options_.max_bytes / sizeof(float);
  vectors_.data.resize(most);
  vectors_.scratch.resize(most);

  const Wire wire = link_ ? *link_ : measure_wire(ctx_, comm_);
  say("{} ranks over {}; {} link: alpha {:.1f} us a message, {:.4f} GB/s\n"
      "us: median of {} calls, each the slowest rank's; algbw: size / time; busbw: algbw x what a "
      "port must carry,\n2(P-1)/P for allreduce, (P-1)/P for allgather (size: the gathered one), 1 "
      "for broadcast and reduce;\nbytes: on the wire, all ranks together; model: us by the cost "
      "model at this alpha and bandwidth, additions free\n\n"
      "{:<10} {:<7} {:>11} {:>11} {:>10} {:>9} {:>9} {:>12} {:>10} {:>7}\n",
      comm_.size(), comm_.transport(), link_ ? "the" : "slowest", wire.alpha * 1e6,
      4e-9 / std::max(wire.beta, 1e-15), options_.iterations, "collective", "by", "size B", "count",
      "us", "algbw", "busbw", "bytes", "model us", "#wrong");
  size_t wrong = 0;
  for (const Case& test : cases)
    for (double bytes = static_cast<double>(options_.min_bytes);
         bytes <= static_cast<double>(options_.max_bytes); bytes *= options_.factor) {
      const size_t n = static_cast<size_t>(bytes) / sizeof(float);
      const Row row = measure(test, n);
      print(test, row, test.cost ? test.cost(wire, comm_.size(), static_cast<double>(n)) : 0);
      wrong += row.wrong;
    }
  if (csv_.is_open()) check<Fault>(csv_.good(), "[bench] writing {} failed", options_.csv);
  return wrong;
}

/// The benchmark on the wires of `comm`, or on emulated links over them.
size_t run_on(Communicator& comm, const Options& options) {
  if (options.link.empty()) return CommBench(comm, options, {}).run();
  Context ctx;
  std::unique_ptr<LinkCommunicator> linked;
  std::optional<Wire> wire;
  agree(ctx, comm, [&] {
    const LinkSpec spec = parse_link(options.link, options.ranks_per_node);
    const LinkTime time = options.simulate ? LinkTime::simulated : LinkTime::real;
    wire = {.alpha = spec.latency, .beta = spec.seconds(sizeof(float)) - spec.latency};
    linked = std::make_unique<LinkCommunicator>(ctx, comm, spec, time);
  });
  return CommBench(*linked, options, wire).run();
}

int run_bench(Communicator& world, const Options& options) {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  check(options.workers == 0 || !started_by_mpi(),
        "[bench] workers is {} under mpirun; the number of ranks is mpirun's -n here",
        options.workers);
  check(!options.simulate || !options.link.empty(),
        "[bench] a simulated clock needs a link to simulate; add --link, e.g. 1Gbit,0.4ms");
  size_t wrong = 0;
  if (options.workers <= 1) {
    wrong = run_on(world, options);
  } else {
    run_on_threads(options.workers, [&](Communicator& comm) {
      const size_t found = run_on(comm, options);
      if (comm.rank() == 0) wrong = found;
    });
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace

void add_bench_comm(CLI::App& app, int& code) {
  CLI::App* command = app.add_subcommand(
      "comm", "collectives: every algorithm over a range of sizes, checked, then timed");
  const auto options = std::make_shared<Options>();
  const auto size = CLI::AsSizeValue(false);
  command->add_option("-b,--min-bytes", options->min_bytes, "smallest size, e.g. 4K")
      ->capture_default_str()
      ->transform(size);
  command->add_option("-e,--max-bytes", options->max_bytes, "largest size, e.g. 64M")
      ->capture_default_str()
      ->transform(size);
  command->add_option("-f,--factor", options->factor, "from one size to the next")
      ->capture_default_str()
      ->check(CLI::Range(1.01, 1e6));
  command->add_option("-n,--iterations", options->iterations, "timed calls")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  command->add_option("-w,--warmup", options->warmup, "calls before them; the first is checked")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  command->add_option("--collective", options->collective)
      ->capture_default_str()
      ->check(CLI::IsMember({"all", "broadcast", "reduce", "allreduce", "allgather"}));
  command->add_option("--algorithm", options->algorithm, "ring, lp, mst, be, native or bruck")
      ->capture_default_str();
  command->add_option("--root", options->root, "of broadcast and reduce")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--workers", options->workers, "ranks as threads; without it mpirun's")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  command->add_option("--link", options->link, "emulate links between nodes, e.g. 1Gbit,0.4ms");
  command->add_option("--ranks-per-node", options->ranks_per_node, "that share an emulated link")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command->add_flag("--simulated-clock", options->simulate,
                    "compute the emulated link's seconds instead of waiting for them");
  command->add_option("--set", options->set, "a collective's own option, e.g. lp.block=65536");
  command->add_option("--csv", options->csv, "also write the table to this file");
  command->callback([options, &code] {
    code = run_program([&](Communicator& world) { return run_bench(world, *options); });
  });
}

}  // namespace tw
