// Loops of batch norm on the CPU, included once for each instruction set by batch_norm_kernels.h.
// Each function handles n elements from the start of a folded row. `sums` is [2, width].

namespace tw::ops::TW_CPU {

using bn::Backward, bn::Forward, bn::Mask;

/// Calls step(at, length) for one folded row after the other; only the last may be incomplete.
/// Reading several rows at once would save loads of coefficients and sums, but the jumps defeat
/// the hardware's prefetch: half the speed where the tensor is larger than the caches.
template <class Step>
TW_INLINE void walk(size_t width, size_t n, const Step& step) {
  for (size_t at = 0; at < n; at += width) step(at, std::min(width, n - at));
}

template <class T>
struct ForwardSums {
  const T* x;
  const float* shift;
  float *first, *second;

  TW_INLINE void operator()(size_t at, size_t length) const {
    const T* const from = x + at;
#pragma GCC ivdep
    for (size_t i = 0; i < length; ++i) {
      const float d = load(from[i]) - shift[i];
      first[i] += d;
      second[i] += d * d;
    }
  }
};

template <class T, bool kResidual>
struct Normalise {
  const T *x, *residual;
  T* y;
  const float *mean, *scale, *beta;
  float floor;

  TW_INLINE void operator()(size_t at, size_t length) const {
    const T* const from = x + at;
    const T* const added = kResidual ? residual + at : nullptr;
    T* const to = y + at;
#pragma GCC ivdep
    for (size_t i = 0; i < length; ++i) {
      float value = (load(from[i]) - mean[i]) * scale[i] + beta[i];
      if constexpr (kResidual) value += load(added[i]);
      // this order keeps a NaN
      store(to[i], floor > value ? floor : value);
    }
  }
};

/// The gradient that passes the ReLU; d is x - mean.
template <Mask kMask, class T>
TW_INLINE float masked(float g, float d, const T* y, const Backward<T>& b, size_t i) {
  if constexpr (kMask == Mask::output) return where(load(y[i]) > 0.0f, g);
  if constexpr (kMask == Mask::input) return where(d * b.scale[i] + b.beta[i] > 0.0f, g);
  return g;
}

template <class T, Mask kMask, bool kTwo, bool kKeep>
struct BackwardSums {
  Backward<T> b;
  float *first, *second;

  TW_INLINE void operator()(size_t at, size_t length) const {
    const T *const x = b.x + at, *const dy = b.dy + at;
    const T* const y = kMask == Mask::output ? b.y + at : nullptr;
    const T* const dy2 = kTwo ? b.dy2 + at : nullptr;
    T* const kept = kKeep ? b.kept + at : nullptr;
#pragma GCC ivdep
    for (size_t i = 0; i < length; ++i) {
      const float d = load(x[i]) - b.mean[i];
      float g = load(dy[i]);
      if constexpr (kTwo) g += load(dy2[i]);
      g = masked<kMask>(g, d, y, b, i);
      if constexpr (kKeep) store(kept[i], g);
      first[i] += g;
      second[i] += g * d;
    }
  }
};

template <class T, Mask kMask>
struct InputGradient {
  Backward<T> b;
  const T* gradient;

  TW_INLINE void operator()(size_t at, size_t length) const {
    const T *const x = b.x + at, *const dy = gradient + at;
    const T* const y = kMask == Mask::output ? b.y + at : nullptr;
    T* const dx = b.dx + at;
#pragma GCC ivdep
    for (size_t i = 0; i < length; ++i) {
      const float d = load(x[i]) - b.mean[i];
      const float g = masked<kMask>(load(dy[i]), d, y, b, i);
      store(dx[i], b.scale[i] * g + (b.slope[i] * d + b.offset[i]));
    }
  }
};

/// sums = sum of d and of d * d, where d = x - shift.
template <class T>
void forward_sums(const T* x, const float* shift, size_t width, size_t n, float* sums) {
  std::fill_n(sums, 2 * width, 0.0f);
  walk(width, n, ForwardSums<T>{x, shift, sums, sums + width});
}

/// y = relu?((x - mean) * scale + beta [+ residual])
template <class T>
void normalise(const Forward& f, const T* x, const T* residual, T* y, size_t n) {
  const float floor = f.relu ? 0.0f : -std::numeric_limits<float>::infinity();
  if (residual == nullptr)
    walk(f.width, n, Normalise<T, false>{x, x, y, f.mean, f.scale, f.beta, floor});
  else
    walk(f.width, n, Normalise<T, true>{x, residual, y, f.mean, f.scale, f.beta, floor});
}

template <class T, Mask kMask>
TW_INLINE void backward_sums_masked(const Backward<T>& b, size_t n, float* sums) {
  if (b.dy2 != nullptr)
    walk(b.width, n, BackwardSums<T, kMask, true, true>{b, sums, sums + b.width});
  else if (b.kept != nullptr)
    walk(b.width, n, BackwardSums<T, kMask, false, true>{b, sums, sums + b.width});
  else
    walk(b.width, n, BackwardSums<T, kMask, false, false>{b, sums, sums + b.width});
}

/// The same tensors from element `begin` on.
template <class T>
TW_INLINE Backward<T> from(Backward<T> b, size_t begin) {
  const auto advance = [begin](auto*& p) { p = p == nullptr ? nullptr : p + begin; };
  advance(b.x), advance(b.y), advance(b.dy), advance(b.dy2), advance(b.kept), advance(b.dx);
  return b;
}

/// sums = sum of g and of g * (x - mean); writes g to `kept`. Elements [begin, begin + n).
template <class T>
void backward_sums(const Backward<T>& all, size_t begin, size_t n, float* sums) {
  const Backward<T> b = from(all, begin);
  std::fill_n(sums, 2 * b.width, 0.0f);
  if (b.mask == Mask::none)
    backward_sums_masked<T, Mask::none>(b, n, sums);
  else if (b.mask == Mask::output)
    backward_sums_masked<T, Mask::output>(b, n, sums);
  else
    backward_sums_masked<T, Mask::input>(b, n, sums);
}

/// dx for elements [begin, begin + n); reads g from `kept` unless it is null.
template <class T>
void input_gradient(const Backward<T>& all, size_t begin, size_t n) {
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

}  // namespace tw::ops::TW_CPU
