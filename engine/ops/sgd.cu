#include <algorithm>
#include <array>

#include "engine/cuda/cuda_kernel.h"
#include "engine/ops/sgd.h"

namespace tw::ops {
namespace {

/// Ranges of one launch: they fit in the 4 KiB of kernel arguments.
constexpr size_t kMaxRanges = 768;

struct Ranges {
  static constexpr uint8_t kDecays = 1, kCorrected = 2;
  uint32_t count = 0;
  std::array<uint32_t, kMaxRanges> first{};
  std::array<uint8_t, kMaxRanges> rules{};

  /// The rule of element i: that of the last range that starts at or before it.
  __device__ uint8_t rule(int64_t i) const {
    uint32_t low = 0, high = count;  // that range is in [low, high)
    while (high - low > 1) {
      const uint32_t middle = (low + high) / 2;
      (first[middle] <= i ? low : high) = middle;
    }
    return rules[low];
  }
};

struct Update {
  SgdParams params;
  Ranges ranges;
  const RecordedStep* recorded;  // null: params.lr
  const float* g;
  float *m, *w;

  __device__ void operator()(int64_t i) const {
    if (recorded != nullptr && recorded->nonfinite != RecordedStep::kAllFinite) return;
    const uint8_t rule = ranges.rule(i);
    const float lr = recorded != nullptr ? recorded->lr : params.lr, mean = params.scale * g[i];
    const float decay_rate = rule & Ranges::kDecays ? params.weight_decay : 0.0f;
    float here = w[i];
    if (!(rule & Ranges::kCorrected))
      here = updated(i, here, mean, decay_rate, lr);
    else if (decay_rate > 0)
      here = updated(i, here, 0, decay_rate, lr);
    w[i] = rule & Ranges::kCorrected ? fmaf(-lr, mean, here) : here;
  }

  /// Fused by hand, so that the bits do not depend on the compiler's choice.
  __device__ float updated(int64_t i, float here, float mean, float decay_rate, float lr) const {
    const float gradient = fmaf(decay_rate, here, mean);
    float step = gradient;
    if (params.momentum != 0.0f) {
      const float velocity = fmaf(params.momentum, m[i], gradient);
      m[i] = velocity;
      step = params.nesterov ? fmaf(params.momentum, velocity, gradient) : velocity;
    }
    return fmaf(-lr, step, here);
  }
};

void sgd_update_cuda(Context& ctx, const SgdParams& params, std::span<const uint32_t> decay_bounds,
                     std::span<const float> g, std::span<float> m, std::span<float> w,
                     std::span<const uint32_t> corrected_bounds, const RecordedStep* recorded) {
  Update update{.params = params,
                .ranges = {},
                .recorded = recorded,
                .g = nullptr,
                .m = nullptr,
                .w = nullptr};
  Ranges& ranges = update.ranges;
  size_t first = 0;
  for_each_sgd_range(decay_bounds, corrected_bounds, w.size(),
                     [&](size_t begin, size_t end, bool decays, bool corrected) {
                       if (ranges.count == 0) first = begin;
                       ranges.first[ranges.count] = static_cast<uint32_t>(begin - first);
                       ranges.rules[ranges.count++] = static_cast<uint8_t>(
                           (decays ? Ranges::kDecays : 0) | (corrected ? Ranges::kCorrected : 0));
                       if (ranges.count < kMaxRanges && end < w.size()) return;
                       update.g = g.data() + first;
                       update.m = m.empty() ? nullptr : m.data() + first;
                       update.w = w.data() + first;
                       cuda::for_each(ctx, "sgd_update", static_cast<int64_t>(end - first), update);
                       ranges.count = 0;
                     });
}

const bool sgd_registered = sgd_update_dispatch.add(Device::cuda, sgd_update_cuda);

}  // namespace
}  // namespace tw::ops
