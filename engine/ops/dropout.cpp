#include "engine/ops/dropout.h"

#include <algorithm>

#include "engine/core/parallel.h"
#include "engine/ops/checks.h"
#include "engine/ops/element.h"

#define TW_KERNELS "engine/ops/dropout.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::ops::TW_CPU {

/// Elements whose random words are drawn together, in a buffer on the stack.
inline constexpr size_t kDropoutTile = 1024;

/// factors[i] = 0 or scale for elements 4 * first_block + i.
inline void draw_factors(const Philox& philox, uint64_t step, uint32_t first_block, float rate,
                         float* factors) {
  const float scale = 1.0f / (1.0f - rate);
  for (uint32_t block = 0; block < kDropoutTile / 4; ++block) {
    const Philox::Block words = philox(step, first_block + block);
    for (size_t i = 0; i < 4; ++i)
      factors[4 * block + i] = uniform(words[i]) >= rate ? scale : 0.0f;
  }
}

// selects instead of multiplying by 0: a dropped infinity is 0, not NaN
template <class T>
void drop(const float* factors, const T* x, T* y, size_t n) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) store(y[i], where(factors[i] > 0.0f, load(x[i]) * factors[i]));
}
}  // namespace tw::ops::TW_CPU
#else
namespace tw::ops {

using baseline::kDropoutTile;

void dropout(Context& ctx, float rate, const Philox& philox, uint64_t step, const Tensor& x,
             const Tensor& y, const RecordedStep* recorded) {
  check(rate >= 0.0f && rate < 1.0f, "[dropout] rate is {}; expected 0 <= rate < 1", rate);
  check_activation("dropout", "x", x);
  check_like("dropout", "y", y, x);
  dropout_dispatch(ctx.device(), ctx, rate, philox, step, x, y, recorded);
}

namespace {

void dropout_cpu(Context& ctx, float rate, const Philox& philox, uint64_t step, const Tensor& x,
                 const Tensor& y, const RecordedStep*) {
  with_activation_type(x.dtype, [&]<class T>() {
    const auto from = x.as<T>(), to = y.as<T>();
    parallel_for(ctx, from.size(), kDropoutTile, [&](size_t begin, size_t end) {
      float factors[kDropoutTile];
      TW_KERNEL(draw_factors, philox, step, static_cast<uint32_t>(begin / 4), rate, factors);
      TW_KERNEL(drop, factors, from.data() + begin, to.data() + begin, end - begin);
    });
  });
}

const bool dropout_registered = dropout_dispatch.add(Device::cpu, dropout_cpu);

}  // namespace
}  // namespace tw::ops
#endif
