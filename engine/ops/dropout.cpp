#include "engine/ops/dropout.h"

#include <algorithm>

#include "engine/core/parallel.h"
#include "engine/ops/checks.h"
#include "engine/ops/element.h"

namespace tw::ops {

constinit DispatchTable<DropoutFunction> dropout_dispatch{"dropout"};

void dropout(Context& ctx, float rate, const Philox& philox, uint64_t step, const Tensor& x,
             const Tensor& y) {
  check(rate >= 0.0f && rate < 1.0f, "[dropout] rate is {}; expected 0 <= rate < 1", rate);
  check_activation("dropout", "x", x);
  check_like("dropout", "y", y, x);
  dropout_dispatch(ctx.device(), ctx, rate, philox, step, x, y);
}

namespace {

/// Elements whose random words are drawn together, in a buffer on the stack.
constexpr size_t kTile = 1024;

/// factors[i] = 0 or scale for elements 4 * first_block + i.
TW_MULTIVERSION void draw_factors(const Philox& philox, uint64_t step, uint32_t first_block,
                                  float rate, float* factors) {
  const float scale = 1.0f / (1.0f - rate);
  for (uint32_t block = 0; block < kTile / 4; ++block) {
    const Philox::Block words = philox(step, first_block + block);
    for (size_t i = 0; i < 4; ++i)
      factors[4 * block + i] = uniform(words[i]) >= rate ? scale : 0.0f;
  }
}

// selects instead of multiplying by 0: a dropped infinity is 0, not NaN
template <class T>
TW_INLINE void apply_loop(const float* factors, const T* x, T* y, size_t n) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) store(y[i], factors[i] > 0.0f ? load(x[i]) * factors[i] : 0.0f);
}
TW_MULTIVERSION void apply(const float* factors, const float* x, float* y, size_t n) {
  apply_loop(factors, x, y, n);
}
TW_MULTIVERSION void apply(const float* factors, const bf16* x, bf16* y, size_t n) {
  apply_loop(factors, x, y, n);
}

void dropout_cpu(Context& ctx, float rate, const Philox& philox, uint64_t step, const Tensor& x,
                 const Tensor& y) {
  with_activation_type(x.dtype, [&]<class T>() {
    const auto from = x.as<T>(), to = y.as<T>();
    parallel_for(ctx, from.size(), kTile, [&](size_t begin, size_t end) {
      float factors[kTile];
      draw_factors(philox, step, static_cast<uint32_t>(begin / 4), rate, factors);
      apply(factors, from.data() + begin, to.data() + begin, end - begin);
    });
  });
}

const bool dropout_registered = dropout_dispatch.add(Device::cpu, dropout_cpu);

}  // namespace
}  // namespace tw::ops
