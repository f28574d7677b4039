#include "engine/ops/batch_norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "engine/core/parallel.h"
#include "engine/ops/batch_norm_kernels.h"
#include "engine/ops/checks.h"

namespace tw::ops {

namespace {

constexpr auto kOp = "batch_norm";

void check_vectors(const Tensor& x, std::initializer_list<const Tensor*> vectors) {
  check(x.shape.rank() >= 1 && x.numel() > 0, "[{}] x is {}; expected (N, ..., C)", kOp, x.shape);
  for (const Tensor* v : vectors) {
    check_dtype(kOp, "a per-channel tensor", *v, DType::f32);
    check_shape(kOp, "a per-channel tensor", *v, {x.shape[x.shape.rank() - 1]});
  }
}

void check_forward(const BatchNormForward& t) {
  check_activation(kOp, "x", t.x);
  check_like(kOp, "y", t.y, t.x);
  if (t.residual.data != nullptr) check_like(kOp, "residual", t.residual, t.x);
  check_vectors(t.x, {&t.gamma, &t.beta, &t.running_mean, &t.running_var});
}

}  // namespace

size_t batch_norm_scratch_bytes(const Context& ctx, const Shape& x) {
  return batch_norm_scratch_dispatch(ctx.device(), ctx, x);
}

void batch_norm_train(Context& ctx, const BatchNormParams& params, const BatchNormForward& t) {
  check_forward(t);
  check_vectors(t.x, {&t.saved_mean, &t.saved_rstd});
  check(t.x.numel() > t.gamma.numel(), "[{}] x is {}; training needs two values per channel", kOp,
        t.x.shape);
  batch_norm_train_dispatch(ctx.device(), ctx, params, t);
}

void batch_norm_infer(Context& ctx, const BatchNormParams& params, const BatchNormForward& t) {
  check_forward(t);
  batch_norm_infer_dispatch(ctx.device(), ctx, params, t);
}

void batch_norm_backward(Context& ctx, const BatchNormParams& params, const BatchNormBackward& t,
                         bool accumulate) {
  check_activation(kOp, "x", t.x);
  check_like(kOp, "dy", t.dy, t.x);
  check_like(kOp, "dx", t.dx, t.x);
  for (const Tensor* optional : {&t.dy2, &t.dresidual})
    if (optional->data != nullptr) check_like(kOp, "dy2 or dresidual", *optional, t.x);
  check_vectors(t.x, {&t.gamma, &t.saved_mean, &t.saved_rstd, &t.dgamma, &t.dbeta});
  if (params.relu && t.y.data != nullptr) check_like(kOp, "y", t.y, t.x);
  if (params.relu && t.y.data == nullptr) check_vectors(t.x, {&t.beta});
  batch_norm_backward_dispatch(ctx.device(), ctx, params, t, accumulate);
}

namespace {

/// How a [rows, C] matrix is folded and cut into chunks; depends on the shape alone.
struct Geometry {
  size_t channels, rows, fold, width, chunk, chunks;

  explicit Geometry(const Shape& x)
      : channels(static_cast<size_t>(x[x.rank() - 1])),
        rows(static_cast<size_t>(x.numel()) / channels) {
    // fold rows until the width is a multiple of kVector (skipped above kLong) and about kShort
    constexpr size_t kVector = 32, kShort = 256, kLong = 1024;
    fold = kVector / std::gcd(channels, kVector);
    if (channels * fold > kLong) fold = 1;
    fold *= std::max<size_t>(1, kShort / (channels * fold));
    width = channels * fold;
    // enough work per task, few partial sums
    constexpr size_t kChunk = size_t{1} << 15, kMaxChunks = 128;
    chunk = (std::max(kChunk, elements() / kMaxChunks) + width - 1) / width * width;
    chunks = (elements() + chunk - 1) / chunk;
  }
  size_t elements() const { return rows * channels; }
};

/// Layout of Context::scratch(): coefficients [kCoefficients, width], sums [chunks, 2, width].
class Workspace {
 public:
  static constexpr size_t kCoefficients = 5;

  static size_t floats(const Geometry& g) { return (kCoefficients + 2 * g.chunks) * g.width; }

  Workspace(const Context& ctx, const Geometry& g)
      : g_(g), data_(reinterpret_cast<float*>(ctx.scratch().data())) {
    check<std::logic_error>(ctx.scratch().size() >= floats(g) * sizeof(float),
                            "[{}] scratch has {} bytes; {} are needed", kOp, ctx.scratch().size(),
                            floats(g) * sizeof(float));
  }

  float* coefficient(size_t i) const { return data_ + i * g_.width; }
  float* sums(size_t chunk) const { return data_ + (kCoefficients + 2 * chunk) * g_.width; }

  /// Repeats the first `count` coefficients, of which the first C values are set, over the width.
  void repeat(size_t count) const {
    for (size_t i = 0; i < count; ++i)
      for (size_t at = g_.channels; at < g_.width; at += g_.channels)
        std::copy_n(coefficient(i), g_.channels, coefficient(i) + at);
  }

 private:
  const Geometry& g_;
  float* data_;
};

/// Adds the repetitions of each channel up into the first one; `sums` is [2, width].
void unfold(const Geometry& g, float* sums) {
  for (float* half : {sums, sums + g.width})
    for (size_t at = g.channels; at < g.width; at += g.channels)
      for (size_t c = 0; c < g.channels; ++c) half[c] += half[at + c];
}

/// Runs chunk_sums(begin, n, sums) on every chunk, then finish(c, first, second) on every channel,
/// with the sums over all chunks, added in order and in double.
template <class ChunkSums, class Finish>
void reduce(Context& ctx, const Geometry& g, const Workspace& space, const ChunkSums& chunk_sums,
            const Finish& finish) {
  parallel_for(ctx, g.elements(), g.chunk, [&](size_t begin, size_t end) {
    float* const sums = space.sums(begin / g.chunk);
    chunk_sums(begin, end - begin, sums);
    unfold(g, sums);
  });
  constexpr size_t kBlock = 64;
  parallel_for(ctx, g.channels, kBlock, [&](size_t begin, size_t end) {
    std::array<double, kBlock> first{}, second{};
    for (size_t chunk = 0; chunk < g.chunks; ++chunk) {
      const float* const sums = space.sums(chunk) + begin;
      for (size_t c = 0; c < end - begin; ++c) {
        first[c] += sums[c];
        second[c] += sums[g.width + c];
      }
    }
    for (size_t c = begin; c < end; ++c) finish(c, first[c - begin], second[c - begin]);
  });
}

/// Writes to shift the mean of a few rows spread over the batch. Sums of squares around a value
/// near the mean do not cancel (Chan, Golub, LeVeque, American Statistician 1983).
template <class T>
void estimate_mean(const Geometry& g, const T* x, float* shift) {
  const size_t samples = std::min<size_t>(g.rows, 16);
  std::fill_n(shift, g.channels, 0.0f);
  for (size_t s = 0; s < samples; ++s) {
    const T* const row = x + (g.rows / samples * s) * g.channels;
    for (size_t c = 0; c < g.channels; ++c) shift[c] += load(row[c]);
  }
  for (size_t c = 0; c < g.channels; ++c) shift[c] /= static_cast<float>(samples);
}

/// Coefficients in the order of bn::Forward and of bn::Backward.
enum Coefficient : size_t { kMean, kScale, kBeta, kSlope, kOffset };

template <class T>
void normalise_all(Context& ctx, const BatchNormParams& params, const BatchNormForward& t,
                   const Geometry& g, const Workspace& space) {
  const bn::Forward f{space.coefficient(kMean), space.coefficient(kScale), space.coefficient(kBeta),
                      params.relu, g.width};
  const T* const x = t.x.as<T>().data();
  const T* const residual = t.residual.data == nullptr ? nullptr : t.residual.as<T>().data();
  T* const y = t.y.as<T>().data();
  parallel_for(ctx, g.elements(), g.chunk, [&](size_t begin, size_t end) {
    TW_KERNEL(normalise, f, x + begin, residual == nullptr ? nullptr : residual + begin, y + begin,
              end - begin);
  });
}

void train_cpu(Context& ctx, const BatchNormParams& params, const BatchNormForward& t) {
  const Geometry g(t.x.shape);
  const Workspace space(ctx, g);
  float* const mean = space.coefficient(kMean);
  float* const scale = space.coefficient(kScale);
  float* const beta = space.coefficient(kBeta);
  float* const running_mean = t.running_mean.as<float>().data();
  float* const running_var = t.running_var.as<float>().data();
  const auto n = static_cast<double>(g.rows);

  with_activation_type(t.x.dtype, [&]<class T>() {
    const T* const x = t.x.as<T>().data();
    // the memory of the mean holds the shift first
    estimate_mean(g, x, mean);
    space.repeat(1);
    reduce(
        ctx, g, space,
        [&](size_t begin, size_t length, float* sums) {
          TW_KERNEL(forward_sums, x + begin, mean, g.width, length, sums);
        },
        [&](size_t c, double sum, double square) {
          const double batch_mean = mean[c] + sum / n;
          const double squares = std::max(0.0, square - sum * sum / n);
          const auto rstd = static_cast<float>(1.0 / std::sqrt(squares / n + params.epsilon));
          mean[c] = static_cast<float>(batch_mean);
          // the same product as in backward, which recomputes the mask
          scale[c] = t.gamma.as<float>()[c] * rstd;
          beta[c] = t.beta.as<float>()[c];
          t.saved_mean.as<float>()[c] = mean[c];
          t.saved_rstd.as<float>()[c] = rstd;
          const auto update = [&](float& running, double batch) {
            running += params.momentum * (static_cast<float>(batch) - running);
          };
          update(running_mean[c], batch_mean);
          update(running_var[c], squares / (n - 1.0));
        });
    space.repeat(3);
    normalise_all<T>(ctx, params, t, g, space);
  });
}

void infer_cpu(Context& ctx, const BatchNormParams& params, const BatchNormForward& t) {
  const Geometry g(t.x.shape);
  const Workspace space(ctx, g);
  for (size_t c = 0; c < g.channels; ++c) {
    const float rstd = 1.0f / std::sqrt(t.running_var.as<float>()[c] + params.epsilon);
    space.coefficient(kMean)[c] = t.running_mean.as<float>()[c];
    space.coefficient(kScale)[c] = t.gamma.as<float>()[c] * rstd;
    space.coefficient(kBeta)[c] = t.beta.as<float>()[c];
  }
  space.repeat(3);
  with_activation_type(t.x.dtype, [&]<class T>() { normalise_all<T>(ctx, params, t, g, space); });
}

template <class T>
bn::Backward<T> backward_arguments(const BatchNormParams& params, const BatchNormBackward& t,
                                   const Geometry& g, const Workspace& space) {
  const auto data = [](const Tensor& x) { return x.data == nullptr ? nullptr : x.as<T>().data(); };
  bn::Backward<T> b{};
  b.x = data(t.x), b.y = data(t.y), b.dy = data(t.dy), b.dy2 = data(t.dy2), b.dx = data(t.dx);
  // keeps the sum of two gradients in the memory of dx, so that it is computed once
  b.kept = t.dresidual.data != nullptr ? data(t.dresidual) : t.dy2.data != nullptr ? b.dx : nullptr;
  b.mean = space.coefficient(kMean), b.scale = space.coefficient(kScale);
  b.beta = space.coefficient(kBeta), b.slope = space.coefficient(kSlope);
  b.offset = space.coefficient(kOffset);
  b.mask = !params.relu ? bn::Mask::none : b.y != nullptr ? bn::Mask::output : bn::Mask::input;
  b.width = g.width;
  return b;
}

void backward_cpu(Context& ctx, const BatchNormParams& params, const BatchNormBackward& t,
                  bool accumulate) {
  const Geometry g(t.x.shape);
  const Workspace space(ctx, g);
  float* const mean = space.coefficient(kMean);
  float* const scale = space.coefficient(kScale);
  float* const beta = space.coefficient(kBeta);
  const auto rstd = t.saved_rstd.as<float>();
  const auto n = static_cast<double>(g.rows);

  for (size_t c = 0; c < g.channels; ++c) {
    mean[c] = t.saved_mean.as<float>()[c];
    scale[c] = t.gamma.as<float>()[c] * rstd[c];
    beta[c] = t.beta.data == nullptr ? 0.0f : t.beta.as<float>()[c];
  }
  space.repeat(3);
  with_activation_type(t.x.dtype, [&]<class T>() {
    const auto b = backward_arguments<T>(params, t, g, space);
    reduce(
        ctx, g, space,
        [&](size_t begin, size_t length, float* sums) {
          TW_KERNEL(backward_sums, b, begin, length, sums);
        },
        // dx = scale * (g - sum / n - (x - mean) * rstd^2 * product / n)
        [&](size_t c, double sum, double product) {
          space.coefficient(kSlope)[c] =
              static_cast<float>(-scale[c] * double{rstd[c]} * rstd[c] * product / n);
          space.coefficient(kOffset)[c] = static_cast<float>(-scale[c] * sum / n);
          float& dgamma = t.dgamma.as<float>()[c];
          float& dbeta = t.dbeta.as<float>()[c];
          dgamma = static_cast<float>(rstd[c] * product) + (accumulate ? dgamma : 0.0f);
          dbeta = static_cast<float>(sum) + (accumulate ? dbeta : 0.0f);
        });
    space.repeat(5);
    parallel_for(ctx, g.elements(), g.chunk, [&](size_t begin, size_t end) {
      TW_KERNEL(input_gradient, b, begin, end - begin);
    });
  });
}

size_t scratch_bytes_cpu(const Context&, const Shape& x) {
  return Workspace::floats(Geometry(x)) * sizeof(float);
}

const bool batch_norm_registered = batch_norm_train_dispatch.add(Device::cpu, train_cpu) &&
                                   batch_norm_infer_dispatch.add(Device::cpu, infer_cpu) &&
                                   batch_norm_backward_dispatch.add(Device::cpu, backward_cpu) &&
                                   batch_norm_scratch_dispatch.add(Device::cpu, scratch_bytes_cpu);

}  // namespace
}  // namespace tw::ops
