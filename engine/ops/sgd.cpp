#include "engine/ops/sgd.h"

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/parallel.h"
#include "engine/ops/element.h"

#define TW_KERNELS "engine/ops/sgd.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::ops::TW_CPU {

inline void update_plain(const SgdParams& params, const float* g, float* w, size_t n) {
  const auto [lr, momentum, decay, nesterov, scale] = params;
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) w[i] -= lr * (scale * g[i] + decay * w[i]);
}

inline void update_momentum(const SgdParams& params, const float* g, float* m, float* w, size_t n) {
  const auto [lr, momentum, decay, nesterov, scale] = params;
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) {
    m[i] = momentum * m[i] + (scale * g[i] + decay * w[i]);
    w[i] -= lr * m[i];
  }
}

inline void update_nesterov(const SgdParams& params, const float* g, float* m, float* w, size_t n) {
  const auto [lr, momentum, decay, nesterov, scale] = params;
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) {
    const float gradient = scale * g[i] + decay * w[i];
    m[i] = momentum * m[i] + gradient;
    w[i] -= lr * (gradient + momentum * m[i]);
  }
}

}  // namespace tw::ops::TW_CPU
#else
namespace tw::ops {

void sgd_update(Context& ctx, const SgdParams& params, std::span<const uint32_t> decay_bounds,
                std::span<const float> g, std::span<float> m, std::span<float> w,
                std::span<const uint32_t> corrected_bounds, const RecordedStep* recorded) {
  check(g.size() == w.size() && (m.size() == w.size() || params.momentum == 0.0f),
        "[sgd_update] {} weights, {} gradients, {} momenta", w.size(), g.size(), m.size());
  check(std::ranges::is_sorted(decay_bounds), "[sgd_update] decay bounds do not ascend");
  check(std::ranges::is_sorted(corrected_bounds), "[sgd_update] bounds do not ascend");
  sgd_update_dispatch(ctx.device(), ctx, params, decay_bounds, g, m, w, corrected_bounds, recorded);
}

namespace {

/// Updates one range, all of it with the weight decay of `params`.
void update_range(Context& ctx, const SgdParams& params, std::span<const float> g,
                  std::span<float> m, std::span<float> w) {
  parallel_for(ctx, w.size(), kElementGrain, [&](size_t begin, size_t end) {
    const size_t n = end - begin;
    if (params.momentum == 0.0f)
      TW_KERNEL(update_plain, params, g.data() + begin, w.data() + begin, n);
    else if (params.nesterov)
      TW_KERNEL(update_nesterov, params, g.data() + begin, m.data() + begin, w.data() + begin, n);
    else
      TW_KERNEL(update_momentum, params, g.data() + begin, m.data() + begin, w.data() + begin, n);
  });
}

void sgd_update_cpu(Context& ctx, const SgdParams& params, std::span<const uint32_t> decay_bounds,
                    std::span<const float> g, std::span<float> m, std::span<float> w,
                    std::span<const uint32_t> corrected_bounds, const RecordedStep*) {
  for_each_sgd_range(decay_bounds, corrected_bounds, w.size(),
                     [&](size_t begin, size_t end, bool decays, bool corrected) {
                       const auto update = [&](const SgdParams& own) {
                         update_range(ctx, own, g.subspan(begin, end - begin),
                                      m.empty() ? m : m.subspan(begin, end - begin),
                                      w.subspan(begin, end - begin));
                       };
                       SgdParams own = params;
                       if (!decays) own.weight_decay = 0;
                       if (!corrected) return update(own);
                       own.scale = 0;
                       if (own.weight_decay > 0) update(own);
                       update({.lr = params.lr,
                               .momentum = 0,
                               .weight_decay = 0,
                               .nesterov = false,
                               .scale = params.scale});
                     });
}

const bool sgd_registered = sgd_update_dispatch.add(Device::cpu, sgd_update_cpu);

}  // namespace
}  // namespace tw::ops
#endif
