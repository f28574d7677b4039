#include "engine/ops/nonfinite.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

#include "engine/core/parallel.h"
#include "engine/ops/element.h"

#define TW_KERNELS "engine/ops/nonfinite.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::ops::TW_CPU {

/// All ones in the exponent: infinity or NaN.
TW_INLINE bool nonfinite(float x) {
  constexpr uint32_t exponent = 0x7f800000u;
  return (std::bit_cast<uint32_t>(x) & exponent) == exponent;
}

inline bool finds_nonfinite(const float* x, size_t n) {
  uint32_t found = 0;
  for (size_t i = 0; i < n; ++i) found |= nonfinite(x[i]) ? 1u : 0u;
  return found != 0;
}

}  // namespace tw::ops::TW_CPU
#else
namespace tw::ops {

size_t first_nonfinite(Context& ctx, std::span<const float> x) {
  return first_nonfinite_dispatch(ctx.device(), ctx, x);
}

namespace {

size_t first_nonfinite_cpu(Context& ctx, std::span<const float> x) {
  std::atomic<size_t> first{x.size()};
  parallel_for(ctx, x.size(), kElementGrain, [&](size_t begin, size_t end) {
    if (!TW_KERNEL(finds_nonfinite, x.data() + begin, end - begin)) return;
    const size_t index =
        std::find_if(x.begin() + begin, x.begin() + end, baseline::nonfinite) - x.begin();
    size_t known = first.load();
    while (index < known && !first.compare_exchange_weak(known, index)) {
    }
  });
  return first.load();
}

const bool nonfinite_registered = first_nonfinite_dispatch.add(Device::cpu, first_nonfinite_cpu);

}  // namespace
bool any_nonfinite(std::span<const float> x) {
  return TW_KERNEL(finds_nonfinite, x.data(), x.size());
}

}  // namespace tw::ops
#endif
