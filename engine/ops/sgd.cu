#include <array>

#include "engine/core/buffer.h"
#include "engine/cuda/cuda_kernel.h"
#include "engine/cuda/nonfinite.h"
#include "engine/ops/sgd.h"

namespace tw::ops {
namespace {

/// As many bounds as travel with a launch.
constexpr size_t kMostBounds = 900;

/// Where weight decay applies; see the op's header.
struct Ranges {
  uint32_t count = 0;
  std::array<uint32_t, kMostBounds> bounds{};

  __device__ bool decays(int64_t i) const {
    uint32_t low = 0, high = count;  // the number of bounds at or below i lies in [low, high]
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
struct Everywhere {
  __device__ bool decays(int64_t) const { return true; }
};

template <class Decay>
struct Update {
  SgdParams params;
  Decay decay;
  const StepInput* replay;
  const float* g;
  float *m, *w;

  __device__ void operator()(int64_t i) const {
    if (replay->nonfinite != kAllFinite) return;
    const float lr = params.lr * replay->lr, here = w[i];
    // fused by hand, so that all forms of this kernel give the same bits
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

template <class Decay>
void update(Context& ctx, const SgdParams& params, const Decay& decay, std::span<const float> g,
            std::span<float> m, std::span<float> w) {
  cuda::for_each(ctx, "sgd_update", std::ssize(w),
                 Update<Decay>{params, decay, ctx.handles<CudaHandles>().replay(), g.data(),
                               m.data(), w.data()});
}

void sgd_update_cuda(Context& ctx, const SgdParams& params, std::span<const float> g,
                     std::span<float> m, std::span<float> w) {
  update(ctx, params, Everywhere{}, g, m, w);
}

void sgd_ranges_cuda(Context& ctx, const SgdParams& params, std::span<const uint32_t> bounds,
                     std::span<const float> g, std::span<float> m, std::span<float> w) {
  // an even number at a time, so that the ranges before and behind do not decay
  for (size_t begin = 0, first = 0; first == 0 || first < bounds.size(); first += kMostBounds) {
    const size_t count = std::min(kMostBounds, bounds.size() - first);
    const bool last = first + count >= bounds.size();
    const size_t end = last ? w.size() : std::min<size_t>(bounds[first + count], w.size());
    Ranges ranges;
    ranges.count = static_cast<uint32_t>(count);
    for (size_t i = 0; i < count; ++i)
      ranges.bounds[i] = static_cast<uint32_t>(bounds[first + i] - begin);
    const std::span<float> momenta = m.empty() ? m : m.subspan(begin, end - begin);
    update(ctx, params, ranges, g.subspan(begin, end - begin), momenta,
           w.subspan(begin, end - begin));
    begin = end;
  }
}

struct FindNonfinite {
  const float* x;
  unsigned long long* first;
  __device__ void operator()(int64_t i) const {
    if (!isfinite(x[i])) atomicMin(first, static_cast<unsigned long long>(i));
  }
};

size_t first_nonfinite_cuda(Context& ctx, std::span<const float> x) {
  auto& native = ctx.handles<CudaHandles>();
  unsigned long long* const first = native.result();
  unsigned long long found = x.size();
  cuda::expect(cudaMemcpyAsync(first, &found, sizeof found, cudaMemcpyDefault, native.stream()),
               "first_nonfinite");
  cuda::for_each(ctx, "first_nonfinite", std::ssize(x), FindNonfinite{x.data(), first});
  cuda::expect(cudaMemcpyAsync(&found, first, sizeof found, cudaMemcpyDefault, native.stream()),
               "first_nonfinite");
  native.synchronize();
  return found;
}

const bool registered = sgd_update_dispatch.add(Device::cuda, sgd_update_cuda) &&
                        sgd_ranges_dispatch.add(Device::cuda, sgd_ranges_cuda) &&
                        first_nonfinite_dispatch.add(Device::cuda, first_nonfinite_cuda);

}  // namespace

void note_nonfinite(Context& ctx, std::span<const float> x) {
  cuda::for_each(ctx, "note_nonfinite", std::ssize(x),
                 FindNonfinite{x.data(), &ctx.handles<CudaHandles>().replay()->nonfinite});
}

}  // namespace tw::ops
