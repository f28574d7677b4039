// What `auto` stands for on this machine.
#include <algorithm>
#include <cstdlib>
#include <thread>

#include "apps/train/trainer.h"
#include "engine/core/cpu_features.h"

namespace tw {

Device resolved_device(const TrainConfig& config) {
  if (config.device == "auto")
    return what_is_missing(Device::cuda).empty() ? Device::cuda : Device::cpu;
  return config.device == "cuda" ? Device::cuda : Device::cpu;
}

DType resolved_precision(const TrainConfig& config) {
  if (config.precision == "auto") {
    const bool hardware = resolved_device(config) == Device::cuda || cpu_has_bf16();
    return hardware ? DType::bf16 : DType::f32;
  }
  return config.precision == "bf16" ? DType::bf16 : DType::f32;
}

int64_t resolved_classes(const TrainConfig& config, const DataSplit& data) {
  const int64_t found = data.train->classes;
  check(config.classes == 0 || config.classes >= found, "[options] classes is {}; the data has {}",
        config.classes, found);
  return std::max(config.classes, found);
}

PlanConfig resolved_plan(const TrainConfig& config, const DataSplit& data) {
  return {.batch = config.batch_size,
          .activations = resolved_precision(config),
          .label_smoothing = static_cast<float>(config.label_smoothing),
          .recompute = config.recompute == "blocks",
          .mean = data.mean,
          .deviation = data.deviation};
}

int resolved_threads(const TrainConfig& config, int ranks) {
  if (config.threads_per_rank > 0) return static_cast<int>(config.threads_per_rank);
  // a launcher that spreads ranks over machines says how many are on this one
  for (const char* variable : {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"})
    if (const char* local = std::getenv(variable)) ranks = std::max(1, std::atoi(local));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / ranks);
}

}  // namespace tw
