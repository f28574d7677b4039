#include "apps/common/resolve.h"

#include <algorithm>
#include <thread>

#include "comm/launcher.h"
#include "engine/core/context.h"
#include "engine/core/cpu_features.h"

namespace tw {

Device resolve_device(std::optional<Device> device) {
  return device.value_or(what_is_missing(Device::cuda).empty() ? Device::cuda : Device::cpu);
}

Precision resolve_precision(std::optional<Precision> precision, Device device) {
  const bool has_bf16 = device == Device::cuda || cpu_has_bf16();
  return precision.value_or(has_bf16 ? Precision::bf16 : Precision::f32);
}

int ranks_here(int ranks) {
  const std::optional<Launcher> launcher = find_launcher();
  return launcher && launcher->for_mpi && launcher->local_ranks > 0 ? launcher->local_ranks : ranks;
}

int resolve_threads(int64_t threads, int ranks) {
  if (threads > 0) return static_cast<int>(threads);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / ranks_here(ranks));
}

}  // namespace tw
