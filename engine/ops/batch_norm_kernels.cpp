#include "engine/ops/batch_norm_kernels.h"

#include <algorithm>
#include <limits>

#include "engine/ops/element.h"

namespace tw::ops::bn {
namespace {

/// Calls step.run<R>(at, length) for R folded rows at a time; only the last may be incomplete.
template <class Step>
TW_INLINE void walk(size_t width, size_t n, const Step& step) {
  size_t at = 0;
  for (; at + kRowsAtOnce * width <= n; at += kRowsAtOnce * width)
    step.template run<kRowsAtOnce>(at, width);
  for (; at < n; at += width) step.template run<1>(at, std::min(width, n - at));
}

template <class T>
struct ForwardSums {
  const T* x;
  const float* shift;
  float* sums;
  size_t width;

  template <size_t R>
  TW_INLINE void run(size_t at, size_t length) const {
    const T* const from = x + at;
    const size_t stride = width;
    float *const first = sums, *const second = sums + stride;
#pragma GCC ivdep
    for (size_t i = 0; i < length; ++i) {
      float sum = 0, square = 0;
#pragma GCC unroll 8
      for (size_t r = 0; r < R; ++r) {
        const float d = load(from[r * stride + i]) - shift[i];
        sum += d;
        square += d * d;
      }
      first[i] += sum;
      second[i] += square;
    }
  }
};

template <class T, bool kResidual>
struct Normalise {
  const T *x, *residual;
  T* y;
  const float *mean, *scale, *beta;
  float floor;
  size_t width;

  template <size_t R>
  TW_INLINE void run(size_t at, size_t length) const {
    const T *const from = x + at, *const added = residual + (kResidual ? at : 0);
    T* const to = y + at;
    const size_t stride = width;
#pragma GCC ivdep
    for (size_t i = 0; i < length; ++i) {
      const float centre = mean[i], factor = scale[i], shift = beta[i];
#pragma GCC unroll 8
      for (size_t r = 0; r < R; ++r) {
        const size_t j = r * stride + i;
        float value = (load(from[j]) - centre) * factor + shift;
        if constexpr (kResidual) value += load(added[j]);
        // in this order a NaN stays one
        store(to[j], floor > value ? floor : value);
      }
    }
  }
};

template <class T, Mask kMask, bool kTwo, bool kKeep>
struct BackwardSums {
  Backward<T> b;
  float* sums;

  template <size_t R>
  TW_INLINE void run(size_t at, size_t length) const {
    const T *const x = b.x + at, *const dy = b.dy + at;
    const T* const y = kMask == Mask::output ? b.y + at : nullptr;
    const T* const dy2 = kTwo ? b.dy2 + at : nullptr;
    T* const kept = kKeep ? b.kept + at : nullptr;
    const size_t stride = b.width;
    float *const first = sums, *const second = sums + stride;
#pragma GCC ivdep
    for (size_t i = 0; i < length; ++i) {
      float sum = 0, product = 0;
#pragma GCC unroll 8
      for (size_t r = 0; r < R; ++r) {
        const size_t j = r * stride + i;
        const float d = load(x[j]) - b.mean[i];
        float g = load(dy[j]);
        if constexpr (kTwo) g += load(dy2[j]);
        if constexpr (kMask == Mask::output) g = load(y[j]) > 0.0f ? g : 0.0f;
        if constexpr (kMask == Mask::input) g = d * b.scale[i] + b.beta[i] > 0.0f ? g : 0.0f;
        if constexpr (kKeep) store(kept[j], g);
        sum += g;
        product += g * d;
      }
      first[i] += sum;
      second[i] += product;
    }
  }
};

template <class T, Mask kMask>
struct InputGradient {
  Backward<T> b;
  const T* gradient;

  template <size_t R>
  TW_INLINE void run(size_t at, size_t length) const {
    const T *const x = b.x + at, *const dy = gradient + at;
    const T* const y = kMask == Mask::output ? b.y + at : nullptr;
    T* const dx = b.dx + at;
    const size_t stride = b.width;
#pragma GCC ivdep
    for (size_t i = 0; i < length; ++i) {
      const float mean = b.mean[i], scale = b.scale[i], slope = b.slope[i], offset = b.offset[i];
#pragma GCC unroll 8
      for (size_t r = 0; r < R; ++r) {
        const size_t j = r * stride + i;
        const float d = load(x[j]) - mean;
        float g = load(dy[j]);
        if constexpr (kMask == Mask::output) g = load(y[j]) > 0.0f ? g : 0.0f;
        if constexpr (kMask == Mask::input) g = d * scale + b.beta[i] > 0.0f ? g : 0.0f;
        store(dx[j], scale * g + (slope * d + offset));
      }
    }
  }
};

template <class T>
TW_INLINE void forward_sums_any(const T* x, const float* shift, size_t width, size_t n,
                                float* sums) {
  std::fill_n(sums, 2 * width, 0.0f);
  walk(width, n, ForwardSums<T>{x, shift, sums, width});
}

template <class T>
TW_INLINE void normalise_any(const Forward& f, const T* x, const T* residual, T* y, size_t n) {
  const float floor = f.relu ? 0.0f : -std::numeric_limits<float>::infinity();
  if (residual == nullptr)
    walk(f.width, n, Normalise<T, false>{x, x, y, f.mean, f.scale, f.beta, floor, f.width});
  else
    walk(f.width, n, Normalise<T, true>{x, residual, y, f.mean, f.scale, f.beta, floor, f.width});
}

template <class T, Mask kMask>
TW_INLINE void backward_sums_masked(const Backward<T>& b, size_t n, float* sums) {
  if (b.dy2 != nullptr)
    walk(b.width, n, BackwardSums<T, kMask, true, true>{b, sums});
  else if (b.kept != nullptr)
    walk(b.width, n, BackwardSums<T, kMask, false, true>{b, sums});
  else
    walk(b.width, n, BackwardSums<T, kMask, false, false>{b, sums});
}

/// The same tensors from element `begin` on.
template <class T>
TW_INLINE Backward<T> from(Backward<T> b, size_t begin) {
  const auto advance = [begin](auto*& p) { p = p == nullptr ? nullptr : p + begin; };
  advance(b.x), advance(b.y), advance(b.dy), advance(b.dy2), advance(b.kept), advance(b.dx);
  return b;
}

template <class T>
TW_INLINE void backward_sums_any(const Backward<T>& all, size_t begin, size_t n, float* sums) {
  const Backward<T> b = from(all, begin);
  std::fill_n(sums, 2 * b.width, 0.0f);
  if (b.mask == Mask::none)
    backward_sums_masked<T, Mask::none>(b, n, sums);
  else if (b.mask == Mask::output)
    backward_sums_masked<T, Mask::output>(b, n, sums);
  else
    backward_sums_masked<T, Mask::input>(b, n, sums);
}

template <class T>
TW_INLINE void input_gradient_any(const Backward<T>& all, size_t begin, size_t n) {
  const Backward<T> b = from(all, begin);
  if (b.kept != nullptr)
    walk(b.width, n, InputGradient<T, Mask::none>{b, b.kept});
  else if (b.mask == Mask::none)
    walk(b.width, n, InputGradient<T, Mask::none>{b, b.dy});
  else if (b.mask == Mask::output)
    walk(b.width, n, InputGradient<T, Mask::output>{b, b.dy});
  else
    walk(b.width, n, InputGradient<T, Mask::input>{b, b.dy});
}

}  // namespace

TW_MULTIVERSION void forward_sums(const float* x, const float* shift, size_t width, size_t n,
                                  float* sums) {
  forward_sums_any(x, shift, width, n, sums);
}
TW_MULTIVERSION void forward_sums(const bf16* x, const float* shift, size_t width, size_t n,
                                  float* sums) {
  forward_sums_any(x, shift, width, n, sums);
}
TW_MULTIVERSION void normalise(const Forward& f, const float* x, const float* residual, float* y,
                               size_t n) {
  normalise_any(f, x, residual, y, n);
}
TW_MULTIVERSION void normalise(const Forward& f, const bf16* x, const bf16* residual, bf16* y,
                               size_t n) {
  normalise_any(f, x, residual, y, n);
}
TW_MULTIVERSION void backward_sums(const Backward<float>& b, size_t begin, size_t n, float* sums) {
  backward_sums_any(b, begin, n, sums);
}
TW_MULTIVERSION void backward_sums(const Backward<bf16>& b, size_t begin, size_t n, float* sums) {
  backward_sums_any(b, begin, n, sums);
}
TW_MULTIVERSION void input_gradient(const Backward<float>& b, size_t begin, size_t n) {
  input_gradient_any(b, begin, n);
}
TW_MULTIVERSION void input_gradient(const Backward<bf16>& b, size_t begin, size_t n) {
  input_gradient_any(b, begin, n);
}

}  // namespace tw::ops::bn
