#include "engine/core/context.h"

#include <omp.h>

#include "engine/core/parallel.h"

namespace tw {

std::string what_is_missing(Device device) {
  if (!device_handles_dispatch.has(device))
    return "this build has no CUDA engine; build with WITH_CUDA=ON";
  return missing_dispatch.has(device) ? missing_dispatch(device) : "";
}

Context::Context(Device device, int threads, int gpu)
    : device_(device), threads_(threads), gpu_(gpu) {
  check(threads >= 1, "[context] {} threads per rank; at least 1 is needed", threads);
  const std::string missing = what_is_missing(device);
  check(missing.empty(), "[context] device is {}, but {}", name(device), missing);
  handles_ = device_handles_dispatch(device, gpu);
  bind_thread();
}

void Context::bind_thread() const {
  omp_set_num_threads(kOneThreadARank ? 1 : threads_);
  handles_->bind_thread();
}

}  // namespace tw
