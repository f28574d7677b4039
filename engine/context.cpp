#include "engine/context.h"

#include <omp.h>

namespace tw {

constinit Bodies<std::unique_ptr<Native>()> native_bodies{"context"};

Context::Context(Device device, int threads) : device_(device), threads_(threads) {
  check(threads >= 1, "[context] {} threads per rank; at least 1 is needed", threads);
  check(native_bodies.has(device), "[context] this build has no {} engine; build with CUDA",
        name(device));
  native_ = native_bodies(device);
  bind_thread();
}

void Context::bind_thread() const { omp_set_num_threads(threads_); }

}  // namespace tw
