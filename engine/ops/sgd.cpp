#include "engine/ops/sgd.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

#include "engine/core/error.h"
#include "engine/core/parallel.h"
#include "engine/ops/element.h"

namespace tw::ops {

constinit DispatchTable<SgdUpdateBody> sgd_update_dispatch{"sgd_update"};
constinit DispatchTable<SgdRangesBody> sgd_ranges_dispatch{"sgd_update"};
constinit DispatchTable<FirstNonfiniteBody> first_nonfinite_dispatch{"first_nonfinite"};

namespace {

void check_lengths(const SgdParams& params, std::span<const float> g, std::span<const float> m,
                   std::span<const float> w) {
  check(g.size() == w.size() && (m.size() == w.size() || params.momentum == 0.0f),
        "[sgd_update] {} weights, {} gradients, {} momenta", w.size(), g.size(), m.size());
}

}  // namespace

void sgd_update(Context& ctx, const SgdParams& params, std::span<const float> g, std::span<float> m,
                std::span<float> w) {
  check_lengths(params, g, m, w);
  sgd_update_dispatch(ctx.device(), ctx, params, g, m, w);
}

void sgd_update(Context& ctx, const SgdParams& params, std::span<const uint32_t> bounds,
                std::span<const float> g, std::span<float> m, std::span<float> w) {
  check_lengths(params, g, m, w);
  check(std::ranges::is_sorted(bounds), "[sgd_update] bounds of ranges do not ascend");
  sgd_ranges_dispatch(ctx.device(), ctx, params, bounds, g, m, w);
}

size_t first_nonfinite(Context& ctx, std::span<const float> x) {
  return first_nonfinite_dispatch(ctx.device(), ctx, x);
}

namespace {

TW_MULTIVERSION void update_plain(const SgdParams& params, const float* g, float* w, size_t n) {
  const auto [lr, momentum, decay, nesterov, scale] = params;
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) w[i] -= lr * (scale * g[i] + decay * w[i]);
}

TW_MULTIVERSION void update_momentum(const SgdParams& params, const float* g, float* m, float* w,
                                     size_t n) {
  const auto [lr, momentum, decay, nesterov, scale] = params;
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) {
    m[i] = momentum * m[i] + (scale * g[i] + decay * w[i]);
    w[i] -= lr * m[i];
  }
}

TW_MULTIVERSION void update_nesterov(const SgdParams& params, const float* g, float* m, float* w,
                                     size_t n) {
  const auto [lr, momentum, decay, nesterov, scale] = params;
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) {
    const float gradient = scale * g[i] + decay * w[i];
    m[i] = momentum * m[i] + gradient;
    w[i] -= lr * (gradient + momentum * m[i]);
  }
}

void sgd_update_cpu(Context& ctx, const SgdParams& params, std::span<const float> g,
                    std::span<float> m, std::span<float> w) {
  parallel_for(ctx, w.size(), kElementGrain, [&](size_t begin, size_t end) {
    const size_t n = end - begin;
    if (params.momentum == 0.0f)
      update_plain(params, g.data() + begin, w.data() + begin, n);
    else if (params.nesterov)
      update_nesterov(params, g.data() + begin, m.data() + begin, w.data() + begin, n);
    else
      update_momentum(params, g.data() + begin, m.data() + begin, w.data() + begin, n);
  });
}

void sgd_ranges_cpu(Context& ctx, const SgdParams& params, std::span<const uint32_t> bounds,
                    std::span<const float> g, std::span<float> m, std::span<float> w) {
  SgdParams plain = params;
  plain.weight_decay = 0;
  size_t begin = 0;
  for (size_t range = 0; range <= bounds.size(); ++range) {
    const size_t end = range < bounds.size() ? std::min<size_t>(bounds[range], w.size()) : w.size();
    const size_t n = end - begin;
    const std::span<float> momenta = m.empty() ? m : m.subspan(begin, n);
    sgd_update_cpu(ctx, range % 2 == 1 ? params : plain, g.subspan(begin, n), momenta,
                   w.subspan(begin, n));
    begin = end;
  }
}

constexpr uint32_t kExponent = 0x7f800000u;

/// All ones in the exponent: infinity or NaN.
TW_INLINE bool nonfinite(float x) { return (std::bit_cast<uint32_t>(x) & kExponent) == kExponent; }

TW_MULTIVERSION bool any_nonfinite(const float* x, size_t n) {
  uint32_t found = 0;
  for (size_t i = 0; i < n; ++i) found |= nonfinite(x[i]) ? 1u : 0u;
  return found != 0;
}

size_t first_nonfinite_cpu(Context& ctx, std::span<const float> x) {
  std::atomic<size_t> first{x.size()};
  parallel_for(ctx, x.size(), kElementGrain, [&](size_t begin, size_t end) {
    if (!any_nonfinite(x.data() + begin, end - begin)) return;
    const size_t at = std::find_if(x.begin() + begin, x.begin() + end, nonfinite) - x.begin();
    size_t known = first.load();
    while (at < known && !first.compare_exchange_weak(known, at)) {
    }
  });
  return first.load();
}

const bool registered = sgd_update_dispatch.add(Device::cpu, sgd_update_cpu) &&
                        sgd_ranges_dispatch.add(Device::cpu, sgd_ranges_cpu) &&
                        first_nonfinite_dispatch.add(Device::cpu, first_nonfinite_cpu);

}  // namespace
}  // namespace tw::ops
