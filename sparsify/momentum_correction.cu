#include "engine/cuda/phases.h"
#include "sparsify/momentum_correction.h"

namespace tw::cuda {

namespace {

struct Correct {
  float momentum;
  bool nesterov;
  int64_t n;
  float *g, *q;

  __device__ uint32_t* barrier() const { return nullptr; }
  __device__ void operator()(int) const {
    for (int64_t i = first_index(); i < n; i += index_step()) correct(i);
  }
  __device__ void correct(int64_t i) const {
    // explicit fmaf: the same rounding as on a CPU that contracts to FMA
    if (nesterov) {
      const float sum = q[i] + g[i];
      q[i] = momentum * sum;
      g[i] = fmaf(momentum, sum, g[i]);
    } else {
      g[i] = q[i] = fmaf(momentum, q[i], g[i]);
    }
  }
};

void correct_cuda(Context& ctx, float momentum, bool nesterov,
                  std::span<const MomentumSlice> slices) {
  run_together<Correct>(ctx, "correct_momentum", slices.size(), [&](size_t i) {
    const auto& [g, q] = slices[i];
    return Correct{momentum, nesterov, std::ssize(g), g.data(), q.data()};
  });
}

const bool momentum_correction_registered =
    correct_momentum_dispatch.add(Device::cuda, correct_cuda);

}  // namespace
}  // namespace tw::cuda
