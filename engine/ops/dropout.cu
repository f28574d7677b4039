#include "engine/cuda/cuda_kernel.h"
#include "engine/ops/dropout.h"
#include "engine/ops/element.h"

namespace tw::ops {
namespace {

/// Four elements share one draw.
template <class T>
struct Drop {
  Philox philox;
  uint64_t step;
  const RecordedStep* recorded;  // null: `step`
  float rate, scale;
  int64_t n;
  const T* x;
  T* y;

  __device__ void operator()(int64_t block) const {
    const Philox::Block words =
        philox(recorded != nullptr ? recorded->step : step, static_cast<uint32_t>(block));
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t i = 4 * block + j;
      if (i >= n) return;
      // selects instead of multiplying by 0: a dropped infinity is 0, not NaN
      const float kept = cuda::load(x[i]) * scale;
      cuda::store(y[i], uniform(words[j]) >= rate ? kept : 0.0f);
    }
  }
};

void dropout_cuda(Context& ctx, float rate, const Philox& philox, uint64_t step, const Tensor& x,
                  const Tensor& y, const RecordedStep* recorded) {
  with_activation_type(x.dtype, [&]<class T>() {
    const int64_t n = x.numel();
    cuda::for_each(ctx, "dropout", (n + 3) / 4,
                   Drop<T>{.philox = philox,
                           .step = step,
                           .recorded = recorded,
                           .rate = rate,
                           .scale = 1.0f / (1.0f - rate),
                           .n = n,
                           .x = x.as<T>().data(),
                           .y = y.as<T>().data()});
  });
}

const bool dropout_registered = dropout_dispatch.add(Device::cuda, dropout_cuda);

}  // namespace
}  // namespace tw::ops
