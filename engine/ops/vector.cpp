#include "engine/ops/vector.h"

#include <algorithm>
#include <type_traits>

#include "engine/core/parallel.h"
#include "engine/ops/checks.h"
#include "engine/ops/element.h"

#define TW_KERNELS "engine/ops/vector.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::ops::TW_CPU {

template <class From, class To>
void convert(const From* x, To* y, size_t n) {
  // without rounding, a copy keeps every bit
  if constexpr (std::is_same_v<From, To>) return void(std::copy_n(x, n, y));
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) y[i] = static_cast<To>(load(x[i]));
}

template <class T>
void add(const T* x, T* y, size_t n) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) store(y[i], load(y[i]) + load(x[i]));
}

inline void scale(float* x, float factor, size_t n) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) x[i] *= factor;
}

inline void subtract(const float* x, float* y, size_t n) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) y[i] -= x[i];
}

}  // namespace tw::ops::TW_CPU
#else
namespace tw::ops {

void fill(Context& ctx, std::span<float> x, float value) {
  fill_dispatch(ctx.device(), ctx, x, value);
}

void scale(Context& ctx, std::span<float> x, float factor) {
  scale_dispatch(ctx.device(), ctx, x, factor);
}

void subtract(Context& ctx, std::span<const float> x, std::span<float> y) {
  check(x.size() == y.size(), "[subtract] x has {} elements and y {}", x.size(), y.size());
  subtract_dispatch(ctx.device(), ctx, x, y);
}

void add(Context& ctx, std::span<const float> x, std::span<float> y) {
  check(x.size() == y.size(), "[add] x has {} elements and y {}", x.size(), y.size());
  const auto vector = [&](float* data) {
    return Tensor{data, {static_cast<int64_t>(x.size())}, DType::f32, ctx.device()};
  };
  add_dispatch(ctx.device(), ctx, vector(const_cast<float*>(x.data())), vector(y.data()));
}

void add(Context& ctx, const Tensor& x, const Tensor& y) {
  check_activation("add", "x", x);
  check_like("add", "y", y, x);
  add_dispatch(ctx.device(), ctx, x, y);
}

void convert(Context& ctx, const Tensor& x, const Tensor& y) {
  check_activation("convert", "x", x);
  check_activation("convert", "y", y);
  check_shape("convert", "y", y, x.shape);
  convert_dispatch(ctx.device(), ctx, x, y);
}

void transfer(Context& ctx, const Transfers& transfers) {
  transfer_dispatch(ctx.device(), ctx, transfers);
}

namespace {

void fill_cpu(Context& ctx, std::span<float> x, float value) {
  parallel_for(ctx, x.size(), kElementGrain, [&](size_t begin, size_t end) {
    std::fill(x.data() + begin, x.data() + end, value);
  });
}

void scale_cpu(Context& ctx, std::span<float> x, float factor) {
  parallel_for(ctx, x.size(), kElementGrain, [&](size_t begin, size_t end) {
    TW_KERNEL(scale, x.data() + begin, factor, end - begin);
  });
}

void subtract_cpu(Context& ctx, std::span<const float> x, std::span<float> y) {
  parallel_for(ctx, x.size(), kElementGrain, [&](size_t begin, size_t end) {
    TW_KERNEL(subtract, x.data() + begin, y.data() + begin, end - begin);
  });
}

void add_cpu(Context& ctx, const Tensor& x, const Tensor& y) {
  with_activation_type(x.dtype, [&]<class T>() {
    const auto from = x.as<T>(), to = y.as<T>();
    parallel_for(ctx, from.size(), kElementGrain, [&](size_t begin, size_t end) {
      TW_KERNEL(add, from.data() + begin, to.data() + begin, end - begin);
    });
  });
}

void convert_cpu(Context& ctx, const Tensor& x, const Tensor& y) {
  with_activation_type(x.dtype, [&]<class From>() {
    with_activation_type(y.dtype, [&]<class To>() {
      const auto from = x.as<From>();
      const auto to = y.as<To>();
      parallel_for(ctx, from.size(), kElementGrain, [&](size_t begin, size_t end) {
        TW_KERNEL(convert, from.data() + begin, to.data() + begin, end - begin);
      });
    });
  });
}

void transfer_cpu(Context& ctx, const Transfers& transfers) {
  for (const Transfer& each : transfers) {
    check<std::logic_error>(!each.add, "[transfer] the CPU adds by other ops");
    convert(ctx, each.from, each.to);
  }
}

const bool vector_registered =
    fill_dispatch.add(Device::cpu, fill_cpu) && scale_dispatch.add(Device::cpu, scale_cpu) &&
    subtract_dispatch.add(Device::cpu, subtract_cpu) && add_dispatch.add(Device::cpu, add_cpu) &&
    convert_dispatch.add(Device::cpu, convert_cpu) &&
    transfer_dispatch.add(Device::cpu, transfer_cpu);

}  // namespace
}  // namespace tw::ops
#endif
