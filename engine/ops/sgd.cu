#include <algorithm>
#include <array>

#include "engine/cuda/cuda_kernel.h"
#include "engine/ops/sgd.h"

namespace tw::ops {
namespace {

/// Bounds per launch: they fit in the 4 KiB of kernel arguments. Even, so that each range of decay
/// lies in one launch.
constexpr size_t kMaxBounds = 900;

struct DecayBounds {
  uint32_t count = 0;
  std::array<uint32_t, kMaxBounds> bounds{};

  /// Whether element i decays: an odd number of bounds is at or below i.
  __device__ bool decays(int64_t i) const {
    uint32_t low = 0, high = count;  // that number is in [low, high]
    while (low < high) {
      const uint32_t middle = (low + high) / 2;
      if (bounds[middle] <= i)
        low = middle + 1;
      else
        high = middle;
    }
    return low % 2 == 1;
  }
};

struct Update {
  SgdParams params;
  DecayBounds decay;
  const DeviceStepInput* step_input;
  const float* g;
  float *m, *w;

  __device__ void operator()(int64_t i) const {
    if (step_input->nonfinite != kAllFinite) return;
    const float lr = params.lr * step_input->lr, here = w[i];
    // fused by hand, so that the bits do not depend on the compiler's choice
    const float decay_rate = decay.decays(i) ? params.weight_decay : 0.0f;
    const float gradient = fmaf(decay_rate, here, params.scale * g[i]);
    float step = gradient;
    if (params.momentum != 0.0f) {
      const float velocity = fmaf(params.momentum, m[i], gradient);
      m[i] = velocity;
      step = params.nesterov ? fmaf(params.momentum, velocity, gradient) : velocity;
    }
    w[i] = fmaf(-lr, step, here);
  }
};

void sgd_update_cuda(Context& ctx, const SgdParams& params, std::span<const uint32_t> decay_bounds,
                     std::span<const float> g, std::span<float> m, std::span<float> w) {
  const DeviceStepInput* const step_input = ctx.handles<CudaHandles>().step_input();
  size_t begin = 0, first = 0;
  do {
    const size_t count = std::min(kMaxBounds, decay_bounds.size() - first);
    const bool last = first + count == decay_bounds.size();
    const size_t end = last ? w.size() : std::min<size_t>(decay_bounds[first + count], w.size());
    DecayBounds decay;
    decay.count = static_cast<uint32_t>(count);
    for (size_t i = 0; i < count; ++i)
      decay.bounds[i] = static_cast<uint32_t>(decay_bounds[first + i] - begin);
    cuda::for_each(ctx, "sgd_update", static_cast<int64_t>(end - begin),
                   Update{params, decay, step_input, g.data() + begin,
                          m.empty() ? nullptr : m.data() + begin, w.data() + begin});
    begin = end;
    first += count;
  } while (first < decay_bounds.size());
}

const bool sgd_registered = sgd_update_dispatch.add(Device::cuda, sgd_update_cuda);

}  // namespace
}  // namespace tw::ops
