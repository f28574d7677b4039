// advise: predicts which sparsifier is fastest on a link. Measures this machine and the link
// between its ranks, or uses given costs; predicts the iteration time of every sparsifier for any
// number of ranks; prints a recommendation.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "apps/advise/adapt.h"
#include "apps/advise/brakes.h"
#include "apps/advise/config.h"
#include "apps/advise/measure.h"
#include "apps/advise/report.h"
#include "apps/common/launch.h"
#include "apps/common/machine_load.h"
#include "apps/common/outputs.h"
#include "apps/common/rank_utils.h"
#include "apps/common/resolve.h"
#include "comm/transports.h"
#include "data/dataset.h"
#include "engine/io/file.h"

namespace {

using namespace tw;

/// Replaces costs by those of the command line.
void apply_given(const AdviseConfig& config, const ParameterArena& arena, Costs& costs) {
  if (!config.compute_profile.empty()) costs.compute = read_profile(config.compute_profile, arena);
  if (config.compute > 0) costs.compute = {.forward = config.compute};
  if (config.simulate)
    for (const auto& [name, entry] : sparsifiers().entries())
      costs.step[name].update = config.update + (keeps_residual(entry.value) ? config.select : 0);
  if (costs.link.alpha == 0 && costs.link.beta == 0 && !config.link.empty()) {
    const Topology topology = parse_link(config.link);
    costs.link.alpha = topology.usual.cost().alpha;
    costs.link.beta = topology.usual.cost().beta;
  }
  if (config.alpha > 0) costs.link.alpha = config.alpha;
  if (config.beta > 0) costs.link.beta = config.beta;
  if (config.gamma > 0) costs.link.gamma = config.gamma;
  if (config.merge > 0) costs.link.merge = config.merge;
  check(config.simulate || (costs.link.alpha > 0 && costs.link.beta > 0),
        "[advise] one rank cannot measure a link; start several (mpirun, or --workers with "
        "--link), or give --link");
}

constexpr double kLongMeasurement = 20;  // seconds after which a user wants to know how many more

/// Measures all costs. Collective.
Rounds measure(Communicator& comm, const AdviseConfig& config, Model& model, Console& console) {
  Context ctx(Device::cpu, resolve_threads(config.threads_per_rank, comm.size()));
  ctx.bind_thread();
  console.line("measuring {} of {} (batch {}, {}) on {} x {}", counted(config.rounds, "round"),
               config.model, config.batch_size,
               word(resolve_precision(config.precision, resolve_device())),
               counted(comm.size(), "rank"), counted(ctx.threads(), "thread"));
  CostMeter meter(ctx, comm, model, config);
  int64_t round = 0;
  const auto show = [&](const std::string& part) {
    console.progress([&](int columns) {
      const std::string where =
          round == 0 ? "warming up" : fmt::format("round {}/{}", round, config.rounds);
      return fmt::format("{}: {}", where, part).substr(0, static_cast<size_t>(columns));
    });
  };
  meter.round(show);  // warms up
  const MachineLoad load;
  Rounds rounds;
  const auto begin = std::chrono::steady_clock::now();
  for (round = 1; round <= config.rounds; ++round) {
    rounds.push_back(meter.round(show));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const double all = static_cast<double>(config.rounds) * took.count();
    if (round == 1 && config.rounds > 1 && all > kLongMeasurement)
      console.line("{} rounds take about {}; --rounds {} takes less", config.rounds,
                   clock_text(all), (config.rounds + 2) / 3);
  }
  console.clear();
  const MachineLoad::Notes notes = load.notes(comm, ctx.threads());
  for (const std::string& note : notes.lines) console.paragraph("{}", note);
  for (Costs& costs : rounds) costs.busy = notes.busy;
  return rounds;
}

std::vector<Accuracy> accuracies(const AdviseConfig& config) {
  if (config.accuracy.empty())
    return parse_accuracies(built_in_accuracies(), "configs/accuracy.csv");
  return parse_accuracies(read_text(config.accuracy), config.accuracy);
}

/// What sums of n elements take inside nodes of kNodeSetting ranks, if these are nodes of the link,
/// in which messages take no time, or its racks.
std::optional<Load> sums_inside(const AdviseConfig& config, const ExchangeEntry& exchange,
                                size_t n) {
  const auto node = static_cast<int>(config.settings.integer(kNodeSetting));
  if (config.link.empty() || node == 1) return std::nullopt;
  std::optional<Topology> inside;  // racks without ways between them
  if (const int64_t own = config.ranks_per_node; node != own) {
    Topology& link = inside.emplace(parse_link(config.link, static_cast<int>(own)));
    const std::vector<Topology::Ports> racks = std::exchange(link.racks, {});
    const bool alike = std::ranges::all_of(racks, [&](const Topology::Ports& rack) {
      return rack.first * own % node == 0 && (rack.last - rack.first + 1) * own == node;
    });
    if (racks.empty() || !alike) return std::nullopt;
    std::erase_if(link.pairs, [&](const auto& one) {
      return one.first.first * own / node != one.first.second * own / node;
    });
  }
  const std::shared_ptr<Exchange> made = exchange(config.settings);
  return Load{.seconds = [=](const LinkCost& between, int ranks) {
    LinkCost own = inside ? inside->cost(ranks) : LinkCost{};
    own.gamma = between.gamma;
    return made->seconds_inside(own, ranks, n);
  }};
}

/// The flags of costs that --simulate takes as 0.
std::string costs_of_zero(const AdviseConfig& config) {
  std::string flags;
  if (config.simulate && config.update == 0) flags += " --update";
  if (config.simulate && config.gamma == 0) flags += " --gamma --merge";
  return flags.empty() ? flags : flags.substr(1);
}

/// The data set whose accuracies the table of accuracies may have; "unknown" matches none.
std::string data_set_of(const AdviseConfig& config) {
  if (config.classes == 10 && config.image_size == 32) return kCifar10;
  if (config.classes == 1000 && config.image_size == 224) return kImageNet;
  return "unknown";
}

/// What all ranks prepare before they measure.
struct Prepared {
  std::unique_ptr<Model> model;
  AccuracyRules accuracy;
};

void prepare(const AdviseConfig& config, const Communicator& comm, Prepared& prepared) {
  prepared.model = std::make_unique<Model>(
      config.model,
      ModelSpec{.image = {config.image_size, config.image_size, 3}, .classes = config.classes});
  prepared.accuracy = {.table = accuracies(config),
                       .model = config.parameters > 0 ? "" : config.model,
                       .dataset = data_set_of(config),
                       .density = config.density,
                       .batch_size = config.batch_size,
                       .max_loss = config.max_loss};
  if (config.epochs > 0)
    std::erase_if(prepared.accuracy.table,
                  [&](const Accuracy& row) { return row.epochs != config.epochs; });
  if (!config.adapt_density.empty())
    plan_with("*=1", prepared.model->arena(), config);  // only for its errors
  Costs costs;
  if (comm.size() > 1) costs.link = {.alpha = 1, .beta = 1};  // will be measured
  apply_given(config, prepared.model->arena(), costs);  // its errors come before the measurement
  // written at the end; what is there stays if the measurement is interrupted
  if (comm.rank() != 0 || config.csv.empty()) return;
  check_writable(config.csv);
  check_table(config.csv, "sparsifier,collective,");
}

void advise(Communicator& comm, const AdviseConfig& config) {
  comm.set_timeout(config.comm_timeout);
  Console console(comm.rank() == 0);
  Prepared prepared;
  run_collectively(comm, [&] { prepare(config, comm, prepared); });
  const ParameterArena& arena = prepared.model->arena();
  const ModelSpec& spec = prepared.model->spec();
  if (config.parameters == 0)
    console.line("{} with {} classes and images of {} x {}", config.model, spec.classes,
                 spec.image[0], spec.image[1]);
  if (const std::string note = size_note(config.model, spec.image);
      !note.empty() && config.parameters == 0)
    console.paragraph("{}; --image-size changes the size", note);
  Rounds rounds = config.simulate ? Rounds(1) : measure(comm, config, *prepared.model, console);
  const std::optional<Topology> topology = topology_of(config);
  std::map<int, NetworkCost> networks;
  if (topology) networks = network_costs(*topology, config.ranks);
  for (Costs& costs : rounds) {
    apply_given(config, arena, costs);
    costs.networks = networks;
  }

  const size_t flat = static_cast<size_t>(config.parameters);
  const bool overlap = !rounds.front().compute.ready.empty();
  std::vector<Prediction> all =
      predictions(arena, flat, config.density, overlap, config.settings, config.local_steps);
  if (config.local_steps > 1)  // synchronous dense SGD is a rival, too
    for (Prediction& c : predictions(arena, flat, config.density, overlap, config.settings))
      if (c.dense && c.sparsifier == kDense) all.push_back(std::move(c));
  const int64_t node = config.settings.integer(kNodeSetting);
  const auto exchange_of = [](const Prediction& c) -> const ExchangeEntry& {
    return exchanges().find(sparsifiers().find(c.sparsifier).value.exchange).value;
  };
  const auto found =
      std::ranges::find_if(all, [&](const Prediction& c) { return exchange_of(c).forms_nodes; });
  const size_t elements = flat > 0 ? flat : arena.size();
  const std::optional<Load> inside = sums_inside(config, exchange_of(*found), elements);
  if (inside) found->loads.push_back(*inside);
  const Prediction in_nodes = *found;
  const bool left_out = !inside && node > comm.size();  // what its nodes take is not known
  if (left_out) all.erase(found);
  const std::string density = config.density != AdviseConfig{}.density
                                  ? fmt::format(" --density {:g}", config.density)
                                  : "";
  const Comparison comparison(std::move(all), std::move(rounds), std::move(prepared.accuracy),
                              density);
  if (comm.rank() != 0) return;
  if (left_out)
    console.paragraph("{} is left out: {}only {} or more ranks measure the sum inside a node",
                      in_nodes.sparsifier,
                      topology && !topology->racks.empty() ? "racks are of other sizes, and " : "",
                      node);
  else if (!inside && !config.link.empty() && node > config.ranks_per_node)
    console.paragraph(
        "{}: for nodes of {} ranks, in which messages take no time (--ranks-per-node {})",
        in_nodes.sparsifier, node, node);
  if (const int64_t n = config.ranks_per_node; n > 1)
    console.paragraph(
        "{} ranks share a node's port and are priced as if each had its own, but for {}: where all "
        "send at once, an exchange takes up to {} times as long",
        n, in_nodes.sparsifier, n);
  if (config.local_steps > 1)
    console.paragraph("local SGD: {} iterations share a selection and an exchange",
                      config.local_steps);
  else
    console.paragraph("local SGD is not predicted; --local-steps 4 exchanges in every fourth step");
  if (!overlap && flat == 0)
    console.paragraph("dense SGD with overlap is not predicted: it needs --compute-profile");
  if (const std::string flags = costs_of_zero(config); !flags.empty())
    console.line("cost of 0: {}", flags);
  print_costs(console, comparison.rounds(), static_cast<double>(elements), config.density);
  print_comparison(console, comparison, config.ranks);
  if (comm.size() > 1 && config.ranks == std::vector<int64_t>{comm.size()})
    console.line("--ranks 4,8,16 predicts for other numbers of ranks");
  if (config.to_accuracy > 0) print_times_to(console, comparison, config.ranks, config.to_accuracy);
  if (!config.adapt_density.empty()) print_adapted(console, arena, config, comparison.rounds());
  if (topology) print_brakes(console, *topology, comparison, config.ranks);
  const auto seconds = [&](const Prediction& of, int64_t ranks) {
    return interval_text(comparison.seconds(of, static_cast<int>(ranks)));
  };
  for (const int64_t p : config.ranks)
    if (const Prediction use = comparison.verdict(static_cast<int>(p)).use; inside && p > node)
      console.paragraph("on {} ranks an iteration takes {} s with {} ({}={}), {} s with {}", p,
                        seconds(in_nodes, p), in_nodes.kind(), kNodeSetting, node, seconds(use, p),
                        use.label());
  if (config.csv.empty()) return;
  std::ostringstream table;
  write_comparison(table, comparison, config.ranks);
  write_output(config.csv, table.str());
}

/// The build, and the options but those that name a file.
std::vector<std::string> setup_of(AdviseConfig config) {
  std::vector<std::string> all = build_lines();
  std::ranges::move(option_lines(config.table()), std::back_inserter(all));
  return all;
}

int run(Communicator& world, int argc, char** argv) {
  AdviseConfig config;
  run_collectively(world, [&] { config = parse_advise_config(argc, argv); });
  check_ranks(world, config.workers);
  check_same_setup(world, setup_of(config));
  if (config.ranks.empty()) {
    const int64_t measuring = std::max<int64_t>(config.workers, world.size());
    config.ranks =
        measuring > 1 ? std::vector{measuring} : std::vector<int64_t>{2, 4, 8, 16, 32, 64};
  }
  if (config.workers <= 1)
    advise(world, config);
  else
    run_on_threads(static_cast<int>(config.workers),
                   [&](Communicator& comm) { advise(comm, config); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tw::run_program(argv, [&](tw::Communicator& world) { return run(world, argc, argv); });
}
