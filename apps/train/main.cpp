// train: synchronous data-parallel SGD with gradient sparsification, over MPI or threads.
#include <cmath>

#include "apps/common/comm_setup.h"
#include "apps/common/launch.h"
#include "apps/common/rank_utils.h"
#include "apps/train/list.h"
#include "apps/train/trainer.h"
#include "comm/transports.h"
#include "data/loader.h"
#include "engine/core/error.h"

namespace {

using namespace tw;

constexpr int kStoppedBySignal = 3;

DataSplit load_data(const TrainConfig& config) {
  return datasets()
      .find(config.dataset)
      .value({.dir = config.data_dir,
              .val_size = static_cast<size_t>(config.val_size),
              .image_size = config.image_size,
              .colour_jitter = config.colour_jitter,
              .skip_bad = config.bad_images == "skip"});
}

/// One run with one seed, on threads of this process or on the ranks of mpirun.
RunResult run_once(Communicator& world, const TrainConfig& config, const DataSplit& data) {
  const auto as_rank = [&](Communicator& comm) {
    Console console(comm.rank() == 0);
    CommSetup setup(comm, config.comm);
    if (!setup.notice().empty()) console.line("{}", setup.notice());
    return train(setup.comm(), config, data, stop_signal(), console);
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

/// Runs every seed and ends with mean and standard deviation of the final accuracy.
RunResult run_seeds(Communicator& world, TrainConfig config, const DataSplit& data) {
  double sum = 0, squares = 0;
  RunResult last;
  for (const int64_t seed : config.seeds) {
    config.seed = seed;
    TrainConfig one = config;
    if (!one.name.empty()) one.name = fmt::format("{}-s{}", one.name, seed);
    last = run_once(world, one, data);
    if (last.stopped) return last;
    sum += last.val_top1;
    squares += last.val_top1 * last.val_top1;
  }
  const double n = static_cast<double>(config.seeds.size());
  const double mean = sum / n;
  const double deviation =
      n > 1 ? std::sqrt(std::max(0.0, (squares - n * mean * mean) / (n - 1))) : 0;
  if (config.dry_run) return last;
  if (!std::isnan(mean))  // else nothing was validated
    Console(world.rank() == 0).line("\ntop-1 over {} seeds: {:.4f} ± {:.4f}", n, mean, deviation);
  return last;
}

int run(Communicator& world, int argc, char** argv) {
  TrainConfig config;
  run_collectively(world, [&] { config = parse_train_config(argc, argv); });
  if (config.list) throw HelpText{list_text()};
  check_ranks(world, config.workers);
  world.set_timeout(config.comm.comm_timeout);
  Console console(world.rank() == 0);
  if (config.dataset == "shapes" && config.data_dir.empty())
    console.line("no --data-dir given: training on the generated data set shapes");
  DataSplit data;
  run_collectively(world, [&] { data = load_data(config); });
  const RunResult result =
      config.seeds.empty() ? run_once(world, config, data) : run_seeds(world, config, data);
  return result.stopped ? kStoppedBySignal : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tw::run_program([&](Communicator& world) { return run(world, argc, argv); });
}
