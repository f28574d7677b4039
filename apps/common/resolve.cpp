#include "apps/common/resolve.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

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
  for (const char* variable : {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"})
    if (const char* local = std::getenv(variable)) ranks = std::max(1, std::atoi(local));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / ranks);
}

}  // namespace tw
