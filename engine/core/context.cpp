#include "engine/core/context.h"

#include <omp.h>

#include "engine/core/parallel.h"

namespace tw {

constinit Bodies<std::unique_ptr<Native>(int)> native_bodies{"context"};
constinit Bodies<std::string()> missing_bodies{"context"};

std::string what_is_missing(Device device) {
  if (!native_bodies.has(device)) return "this build has no CUDA engine; build with WITH_CUDA=ON";
  return missing_bodies.has(device) ? missing_bodies(device) : "";
}

Context::Context(Device device, int threads, int gpu)
    : device_(device), threads_(threads), gpu_(gpu) {
  check(threads >= 1, "[context] {} threads per rank; at least 1 is needed", threads);
  const std::string missing = what_is_missing(device);
  check(missing.empty(), "[context] device is {}, but {}", name(device), missing);
  native_ = native_bodies(device, gpu);
  bind_thread();
}

void Context::bind_thread() const {
  omp_set_num_threads(kOneThreadARank ? 1 : threads_);
  native_->bind_thread();
}

}  // namespace tw
