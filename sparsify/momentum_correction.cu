#include <cmath>
#include <vector>

#include "engine/cuda/phases.h"
#include "sparsify/kernels/moments.h"
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

struct Scale {
  float scale;
  __device__ float operator()(int64_t, float x) const { return scale * x; }
};

void correct_cuda(Context& ctx, float momentum, bool nesterov,
                  std::span<const MomentumSlice> slices) {
  run_together<Correct>(ctx, "correct_momentum", slices.size(), [&](size_t i) {
    const auto& [g, q] = slices[i];
    return Correct{momentum, nesterov, std::ssize(g), g.data(), q.data()};
  });
}

void clip_cuda(Context& ctx, double limit, std::span<float> g) {
  std::vector<Moments> blocks;
  const double norm = std::sqrt(add_and_moments(ctx, {}, g, blocks).square);
  if (!(norm > limit) || !std::isfinite(norm)) return;
  map(ctx, "clip_norm", std::ssize(g), Scale{static_cast<float>(limit / norm)}, g.data(),
      static_cast<const float*>(g.data()));
}

const bool momentum_correction_registered =
    correct_momentum_dispatch.add(Device::cuda, correct_cuda) &&
    clip_norm_dispatch.add(Device::cuda, clip_cuda);

}  // namespace
}  // namespace tw::cuda
