#include "apps/common/resolve.h"

#include <algorithm>
#include <thread>

#include "comm/launcher.h"
#include "engine/core/context.h"
#include "engine/core/cpu_features.h"

namespace tw {

Device resolve_device(const std::string& device) {
  if (device == "auto") return what_is_missing(Device::cuda).empty() ? Device::cuda : Device::cpu;
  return device == "cuda" ? Device::cuda : Device::cpu;
}

DType resolve_precision(const std::string& precision, Device device) {
  if (precision == "auto")
    return device == Device::cuda || cpu_has_bf16() ? DType::bf16 : DType::f32;
  return precision == "bf16" ? DType::bf16 : DType::f32;
}

int resolve_threads(int64_t threads, int ranks) {
  if (threads > 0) return static_cast<int>(threads);
  const std::optional<Launcher> launcher = find_launcher();
  if (launcher && launcher->for_mpi && launcher->local_ranks > 0) ranks = launcher->local_ranks;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / ranks);
}

}  // namespace tw
