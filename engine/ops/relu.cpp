#include "engine/ops/relu.h"

#include "engine/core/parallel.h"
#include "engine/ops/checks.h"
#include "engine/ops/element.h"

#define TW_KERNELS "engine/ops/relu.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::ops::TW_CPU {

template <class T>
void relu(const T* x, T* y, size_t n) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) {
    const float value = load(x[i]);
    store(y[i], 0.0f > value ? 0.0f : value);
  }
}

template <class T>
void relu_gradient(const T* y, const T* dy, T* dx, size_t n) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) store(dx[i], where(load(y[i]) > 0.0f, load(dy[i])));
}

}  // namespace tw::ops::TW_CPU
#else
namespace tw::ops {

void relu_forward(Context& ctx, const Tensor& x, const Tensor& y) {
  check_activation("relu", "x", x);
  check_like("relu", "y", y, x);
  relu_forward_dispatch(ctx.device(), ctx, x, y);
}

void relu_backward(Context& ctx, const Tensor& y, const Tensor& dy, const Tensor& dx) {
  check_activation("relu", "y", y);
  check_like("relu", "dy", dy, y);
  check_like("relu", "dx", dx, y);
  relu_backward_dispatch(ctx.device(), ctx, y, dy, dx);
}

namespace {

void relu_forward_cpu(Context& ctx, const Tensor& x, const Tensor& y) {
  with_activation_type(x.dtype, [&]<class T>() {
    const auto from = x.as<T>(), to = y.as<T>();
    parallel_for(ctx, from.size(), kElementGrain, [&](size_t begin, size_t end) {
      TW_KERNEL(relu, from.data() + begin, to.data() + begin, end - begin);
    });
  });
}

void relu_backward_cpu(Context& ctx, const Tensor& y, const Tensor& dy, const Tensor& dx) {
  with_activation_type(y.dtype, [&]<class T>() {
    const auto mask = y.as<T>(), from = dy.as<T>(), to = dx.as<T>();
    parallel_for(ctx, mask.size(), kElementGrain, [&](size_t begin, size_t end) {
      TW_KERNEL(relu_gradient, mask.data() + begin, from.data() + begin, to.data() + begin,
                end - begin);
    });
  });
}

const bool relu_registered = relu_forward_dispatch.add(Device::cpu, relu_forward_cpu) &&
                             relu_backward_dispatch.add(Device::cpu, relu_backward_cpu);

}  // namespace
}  // namespace tw::ops
#endif
