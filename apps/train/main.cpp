// train: synchronous data-parallel SGD with gradient sparsification, over MPI or threads.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "apps/common/comm_setup.h"
#include "apps/common/launch.h"
#include "apps/common/rank_utils.h"
#include "apps/train/list.h"
#include "apps/train/sweep.h"
#include "apps/train/trainer.h"
#include "comm/subcommunicator.h"
#include "comm/transports.h"
#include "data/class_names.h"
#include "data/loader.h"
#include "data/wrappers.h"
#include "engine/core/error.h"
#include "sparsify/exchange.h"

namespace {

using namespace tw;

constexpr int kStoppedBySignal = 3;

/// Adds the images of --test-dir, with the labels of the training images.
void add_test(const TrainConfig& config, const DatasetEntry& entry, DataSplit& data) {
  const std::string area = fmt::format("[options] test-dir is {}", config.test_dir);
  std::error_code ignored;
  check(std::filesystem::exists(config.test_dir, ignored), "{}, which does not exist", area);
  const DataSplit opened = entry({.dir = config.test_dir,
                                  .image_size = config.image_size,
                                  .exif_orientation = config.exif_orientation,
                                  .whole = true});
  data.test = relabel(
      opened.val, class_map("names", opened.class_names, data.class_names, area, "training images"),
      data.train->classes);
  if (data.skipped) data.test = skip_bad(data.test, data.skipped);
  data.test_name = fmt::format("{} images of {}", data.test->size(), config.test_dir);
  if (opened.left_out.empty()) return;
  data.left_out += fmt::format("{}{}", data.left_out.empty() ? "" : ", ", opened.left_out);
}

DataSplit load_data(const TrainConfig& config) {
  const DatasetEntry& entry = datasets().find(config.dataset).value;
  DataSplit data = entry({.dir = config.data_dir,
                          .val_size = static_cast<size_t>(config.val_size),
                          .val_split = config.val_split,
                          .image_size = config.image_size,
                          .colour_jitter = config.colour_jitter,
                          .exif_orientation = config.exif_orientation,
                          .skip_bad = config.bad_images == BadImages::skip});
  if (!config.test_dir.empty()) add_test(config, entry, data);
  return data;
}

/// UserError when ranks have other classes, images or labels.
void check_same_data(Communicator& world, const DataSplit& data) {
  std::vector<std::string> lines{fmt::format("training images is {}", data.train->size()),
                                 fmt::format("validation images is {}", data.val->size()),
                                 fmt::format("classes is {}", data.train->classes)};
  for (size_t label = 0; label < data.class_names.size(); ++label)
    lines.push_back(fmt::format("class {} is \"{}\"", label, data.class_names[label]));
  if (data.test) lines.push_back(fmt::format("test images is {}", data.test->size()));
  check_same_setup(world, lines);
  for (const auto& [set, what] :
       {std::pair{data.train, "training"}, {data.val, "validation"}, {data.test, "test"}})
    if (set)
      check_same_lines(world, set->size(), [&](size_t i) {
        return fmt::format("{} image {} is {}", what, i, set->describe(i));
      });
}

/// The console of a rank; the one of rank 0 prints. Collective. UserError when --log cannot be
/// written.
Console open_console(Communicator& comm, const TrainConfig& config) {
  using Output = Console::Output;
  Console console(comm.rank() > 0 || config.plan_json ? Output::none
                  : config.quiet                      ? Output::logs
                                                      : Output::all);
  run_collectively(comm, [&] {
    if (comm.rank() == 0 && !config.log.empty()) console.log_to(config.log);
  });
  return console;
}

/// On several machines, and without another choice, the ranks of a machine form a node.
void follow_machines(Communicator& world, std::vector<TrainConfig>& configs) {
  if (NodePlan(gather(world, world.machine())).nodes() == 1) return;
  for (TrainConfig& config : configs)
    if (config.forms_nodes() && config.comm.ranks_per_node == 1 &&
        !config.is_flag("ranks-per-node"))
      config.settings.set_default(kNodeSetting, "0");
}

/// Says how many ranks the nodes have if they are several machines.
void report_machines(Communicator& comm, const TrainConfig& config, Console& console) {
  if (!config.forms_nodes() || config.settings.integer(kNodeSetting) > 0) return;
  const NodePlan machines(gather(comm, comm.machine()));
  if (machines.nodes() == 1) return;
  std::vector<size_t> ranks;
  for (const int leader : machines.leaders()) ranks.push_back(machines.node_of(leader).size());
  console.line(
      "the machines are the nodes, of {} ranks: each rank has the same weight, and each "
      "node sends the entries of one rank",
      fmt::join(ranks, ", "));
}

/// One run with one seed, on threads of this process or on the ranks of mpirun.
RunResult run_once(Communicator& world, const TrainConfig& config, const DataSplit& data) {
  const auto as_rank = [&](Communicator& comm) {
    Console console = open_console(comm, config);
    try {
      report_machines(comm, config, console);
      CommSetup setup(comm, config.comm);
      if (!setup.notice().empty()) console.line("{}", setup.notice());
      return train(setup.comm(), config, data, stop_signal(), console);
    } catch (const std::exception& error) {
      console.log_error(error_line(error));
      throw;
    }
  };
  if (config.workers <= 1 || config.dry_run) return as_rank(world);
  if (!config.eval_only)  // before threads and models are made
    check_batch(data.train->size(), {.batch = config.batch_size * config.accumulate,
                                     .ranks = static_cast<int>(config.workers)});
  RunResult result;
  run_on_threads(static_cast<int>(config.workers), [&](Communicator& comm) {
    const RunResult mine = as_rank(comm);
    if (comm.rank() == 0) result = mine;
  });
  return result;
}

/// Runs of a sweep that have failed on all ranks, such as one with a learning rate that diverges.
/// They do not end the others.
struct FailedRuns {
  Console& console;
  std::vector<std::string> names;
};

/// One run. One that fails is added to `failed`, and the result is empty; without `failed`, the
/// fault is passed on.
std::optional<RunResult> try_once(Communicator& world, const TrainConfig& config,
                                  const DataSplit& data, FailedRuns* failed) {
  if (!failed) return run_once(world, config, data);
  RunResult result;
  const std::string fault = common_fault_of(world, [&] { result = run_once(world, config, data); });
  if (fault.empty()) return result;
  failed->console.line("{} failed: {}", config.name, fault);
  failed->names.push_back(config.name);
  return std::nullopt;
}

/// Runs every seed and ends with mean and standard deviation of the final accuracy.
RunResult run_seeds(Communicator& world, TrainConfig config, const DataSplit& data,
                    FailedRuns* failed) {
  double sum = 0, squares = 0;
  RunResult last;
  bool all = true;
  for (const int64_t seed : config.seeds) {
    config.seed = seed;
    TrainConfig one = config;
    if (!one.name.empty()) one.name = name_of_seed(one.name, seed);
    const std::optional<RunResult> result = try_once(world, one, data, failed);
    all = all && result;
    if (!result) continue;
    last = *result;
    if (last.stopped) return last;
    sum += last.val_top1;
    squares += last.val_top1 * last.val_top1;
  }
  const double n = static_cast<double>(config.seeds.size());
  const double mean = sum / n;
  const double deviation =
      n > 1 ? std::sqrt(std::max(0.0, (squares - n * mean * mean) / (n - 1))) : 0;
  if (config.dry_run || !all) return last;
  if (!std::isnan(mean))  // else nothing was validated
    open_console(world, config).line("\ntop-1 over {} seeds: {:.4f} ± {:.4f}", n, mean, deviation);
  return last;
}

/// One configuration, with one seed or several. Returns whether a signal stopped it.
bool run_config(Communicator& world, const TrainConfig& config, FailedRuns* failed = nullptr) {
  DataSplit data;
  run_collectively(world, [&] { data = load_data(config); });
  check_same_data(world, data);
  if (!config.seeds.empty()) return run_seeds(world, config, data, failed).stopped;
  return try_once(world, config, data, failed).value_or(RunResult{}).stopped;
}

/// Every run of a sweep that is not finished. Returns whether a signal stopped it.
bool run_sweep(Communicator& world, const std::vector<TrainConfig>& cells) {
  Console console = open_console(world, cells[0]);
  const std::vector<CellState> states = report_sweep(world, console, cells);
  if (cells[0].dry_run) return false;
  FailedRuns failed{console, {}};
  for (size_t i = 0; i < cells.size(); ++i) {
    if (states[i] == CellState::finished && world.rank() == 0) note_folders(cells[i]);
    if (states[i] == CellState::finished) continue;
    console.line("\n{}: run {} of {}", cells[i].name, i + 1, cells.size());
    if (run_config(world, cells[i], &failed)) return true;
  }
  if (world.rank() == 0) report_results(console, cells);
  const size_t runs = cells.size() * std::max<size_t>(1, cells[0].seeds.size());
  check<CollectiveFault>(failed.names.empty(), "[sweep] {} of {} runs failed: {}",
                         failed.names.size(), runs, fmt::join(failed.names, ", "));
  return false;
}

/// The build, and the options of all runs but those that name a file or folder.
std::vector<std::string> setup_of(const std::vector<TrainConfig>& configs) {
  std::vector<std::string> all = build_lines();
  for (TrainConfig config : configs)
    std::ranges::move(option_lines(config.table()), std::back_inserter(all));
  return all;
}

int run(Communicator& world, int argc, char** argv) {
  keep_signals_from_computing();
  std::vector<TrainConfig> configs;
  OptionTable::Given flags;
  RunOptions options;  // the run folder may be on a disk of rank 0
  run_collectively(world, [&] {
    flags = parse_flags(argc, argv);
    options = read_run_options(flags);
  });
  options = {broadcast_text(world, options.file), broadcast_text(world, options.text),
             broadcast_text(world, options.anew), broadcast_text(world, options.name)};
  run_collectively(world, [&] {
    configs = parse_train_configs(flags, options);
    if (world.rank() == 0) check_resume(configs.front());
  });
  const TrainConfig& first = configs.front();
  if (first.list) throw HelpText{list_text()};
  for (const TrainConfig& config : configs) check_ranks(world, config.workers);
  world.set_timeout(first.comm.comm_timeout);
  check_same_setup(world, setup_of(configs));
  for (TrainConfig& config : configs) config.comm.read_link(config.settings);
  follow_machines(world, configs);
  const bool stopped = first.cell.empty() ? run_config(world, first) : run_sweep(world, configs);
  return stopped ? kStoppedBySignal : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tw::run_program(argv, [&](Communicator& world) { return run(world, argc, argv); });
}
