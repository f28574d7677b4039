// Batch norm on the GPU: two kernels forward (statistics; normalise) and two backward (sums; input
// gradient). Statistics sum x minus a value near the mean, to avoid cancellation.
#include "engine/cuda/column_sums.h"
#include "engine/ops/batch_norm.h"
#include "engine/ops/element.h"

namespace tw::ops {
namespace {

using cuda::Columns, cuda::Pack;

template <class T, int kWide>
__device__ const Pack<T, kWide>& pack_of(const Columns& g, const T* x, int64_t row) {
  return reinterpret_cast<const Pack<T, kWide>*>(x + row * g.channels)[g.pack()];
}
template <int kWide, class T>
__device__ Pack<T, kWide>& pack_of(const Columns& g, T* x, int64_t row) {
  return reinterpret_cast<Pack<T, kWide>*>(x + row * g.channels)[g.pack()];
}

/// Statistics of a channel from the sums of x - shift and its square; the shift is x of row 0.
template <class T>
struct FinishStatistics {
  const T* x;
  double rows;
  float epsilon, momentum;
  float *mean, *rstd, *running_mean, *running_var;

  __device__ void operator()(int64_t c, const double (&total)[2]) const {
    const double batch_mean = cuda::load(x[c]) + total[0] / rows;
    // this order keeps a NaN
    const double difference = total[1] - total[0] * total[0] / rows;
    const double squares = difference < 0.0 ? 0.0 : difference;
    mean[c] = static_cast<float>(batch_mean);
    rstd[c] = static_cast<float>(1.0 / sqrt(squares / rows + epsilon));
    update(running_mean[c], batch_mean);
    update(running_var[c], squares / (rows - 1.0));
  }
  __device__ void update(float& running, double batch) const {
    running += momentum * (static_cast<float>(batch) - running);
  }
};

/// Rows of a thread that are loaded before the first is added.
constexpr int kInFlight = 4;
/// Blocks that a multiprocessor runs at once, which limits the registers of a thread to 64. An H200
/// has 132 multiprocessors, so all of the 512 blocks of Columns run at once.
constexpr int kBlocksAtOnce = 4;

template <class T, int kWide>
__global__ void __launch_bounds__(cuda::kThreads, kBlocksAtOnce)
    statistics_kernel(Columns g, const T* x, float* partial, uint32_t* tickets,
                      FinishStatistics<T> finish) {
  float sums[2][kWide] = {};
  if (g.active()) {
    const Pack<T, kWide> shift = pack_of<T, kWide>(g, x, 0);
    for (int64_t first = g.first_row(); first < g.rows; first += kInFlight * g.row_step()) {
      Pack<T, kWide> packs[kInFlight];
#pragma unroll
      for (int r = 0; r < kInFlight; ++r) {
        const int64_t row = first + r * g.row_step();
        if (row < g.rows) packs[r] = pack_of<T, kWide>(g, x, row);
      }
#pragma unroll
      for (int r = 0; r < kInFlight; ++r) {
        if (first + r * g.row_step() >= g.rows) break;
#pragma unroll
        for (int j = 0; j < kWide; ++j) {
          const float d = cuda::load(packs[r].values[j]) - cuda::load(shift.values[j]);
          sums[0][j] += d;
          sums[1][j] += d * d;
        }
      }
    }
  }
  cuda::reduce_columns<2>(g, sums, partial, tickets, finish);
}

/// y = relu?((x - mean) * rstd * gamma + beta [+ residual])
template <class T>
struct Normalise {
  const T *x, *residual;
  T* y;
  const float *gamma, *beta, *mean;
  const float *rstd, *variance;  ///< one of them is null
  float epsilon;
  bool relu;
};

template <class T, int kWide>
__global__ void __launch_bounds__(cuda::kThreads) normalise_kernel(Columns g, Normalise<T> a) {
  if (!g.active()) return;
  float mean[kWide], scale[kWide], beta[kWide];
#pragma unroll
  for (int j = 0; j < kWide; ++j) {
    const int64_t c = g.pack() * kWide + j;
    const float rstd = a.rstd != nullptr ? a.rstd[c] : 1.0f / sqrtf(a.variance[c] + a.epsilon);
    mean[j] = a.mean[c], scale[j] = a.gamma[c] * rstd, beta[j] = a.beta[c];
  }
  for (int64_t row = g.first_row(); row < g.rows; row += g.row_step()) {
    const Pack<T, kWide> x = pack_of<T, kWide>(g, a.x, row);
    Pack<T, kWide> added{}, y;
    if (a.residual != nullptr) added = pack_of<T, kWide>(g, a.residual, row);
#pragma unroll
    for (int j = 0; j < kWide; ++j) {
      float value = (cuda::load(x.values[j]) - mean[j]) * scale[j] + beta[j];
      if (a.residual != nullptr) value += cuda::load(added.values[j]);
      cuda::store(y.values[j], a.relu && 0.0f > value ? 0.0f : value);
    }
    pack_of<kWide>(g, a.y, row) = y;
  }
}

/// Source of the ReLU's mask.
enum class Mask { none, output, input };

/// Tensors of backward; the masked gradient is g.
template <class T>
struct BackwardTensors {
  const T *x, *y, *dy, *dy2;  ///< y only for Mask::output; dy2 may be null
  T* kept;                    ///< receives g; may be null unless there is dy2, may equal dy
  T* dx;
  const float *gamma, *beta, *mean, *rstd;  ///< beta only for Mask::input
  float *slope, *offset;                    ///< dx = scale * g + slope * (x - mean) + offset
  Mask mask;
};

/// Coefficients of a thread's channels.
template <int kWide>
struct Channels {
  float mean[kWide], scale[kWide], beta[kWide];

  template <class T>
  __device__ Channels(const Columns& g, const BackwardTensors<T>& b, Mask mask) {
#pragma unroll
    for (int j = 0; j < kWide; ++j) {
      const int64_t c = g.pack() * kWide + j;
      mean[j] = b.mean[c], scale[j] = b.gamma[c] * b.rstd[c];
      beta[j] = mask == Mask::input ? b.beta[c] : 0.0f;
    }
  }
  /// The gradient that passes the ReLU; d is x - mean.
  __device__ float masked(Mask mask, float gradient, float d, float y, int j) const {
    if (mask == Mask::output) return y > 0.0f ? gradient : 0.0f;
    if (mask == Mask::input) return d * scale[j] + beta[j] > 0.0f ? gradient : 0.0f;
    return gradient;
  }
};

template <class T>
struct FinishGradient {
  BackwardTensors<T> b;
  double rows;
  float *dgamma, *dbeta;
  bool accumulate;

  __device__ void operator()(int64_t c, const double (&total)[2]) const {
    const double rstd = b.rstd[c], scale = b.gamma[c] * b.rstd[c];
    b.slope[c] = static_cast<float>(-scale * rstd * rstd * total[1] / rows);
    b.offset[c] = static_cast<float>(-scale * total[0] / rows);
    dgamma[c] = static_cast<float>(rstd * total[1]) + (accumulate ? dgamma[c] : 0.0f);
    dbeta[c] = static_cast<float>(total[0]) + (accumulate ? dbeta[c] : 0.0f);
  }
};

// a kernel for each mask, since all of their values take more registers than kBlocksAtOnce leaves
template <class T, int kWide, Mask kMask>
__global__ void __launch_bounds__(cuda::kThreads, kBlocksAtOnce)
    backward_sums_kernel(Columns g, BackwardTensors<T> b, float* partial, uint32_t* tickets,
                         FinishGradient<T> finish) {
  float sums[2][kWide] = {};
  if (g.active()) {
    const Channels<kWide> channels(g, b, kMask);
    for (int64_t row = g.first_row(); row < g.rows; row += g.row_step()) {
      const Pack<T, kWide> x = pack_of<T, kWide>(g, b.x, row);
      const Pack<T, kWide> dy = pack_of<T, kWide>(g, static_cast<const T*>(b.dy), row);
      Pack<T, kWide> y{}, dy2{}, kept;
      if (kMask == Mask::output) y = pack_of<T, kWide>(g, b.y, row);
      if (b.dy2 != nullptr) dy2 = pack_of<T, kWide>(g, b.dy2, row);
#pragma unroll
      for (int j = 0; j < kWide; ++j) {
        const float d = cuda::load(x.values[j]) - channels.mean[j];
        float gradient = cuda::load(dy.values[j]);
        if (b.dy2 != nullptr) gradient += cuda::load(dy2.values[j]);
        gradient = channels.masked(kMask, gradient, d, cuda::load(y.values[j]), j);
        cuda::store(kept.values[j], gradient);
        sums[0][j] += gradient;
        sums[1][j] += gradient * d;
      }
      if (b.kept != nullptr) pack_of<kWide>(g, b.kept, row) = kept;
    }
  }
  cuda::reduce_columns<2>(g, sums, partial, tickets, finish);
}

template <class T, int kWide>
__global__ void __launch_bounds__(cuda::kThreads)
    input_gradient_kernel(Columns g, BackwardTensors<T> b) {
  if (!g.active()) return;
  const Channels<kWide> channels(g, b, b.mask);
  float slope[kWide], offset[kWide];
#pragma unroll
  for (int j = 0; j < kWide; ++j) {
    slope[j] = b.slope[g.pack() * kWide + j];
    offset[j] = b.offset[g.pack() * kWide + j];
  }
  // `kept` is masked already
  const T* const gradient = b.kept != nullptr ? b.kept : b.dy;
  const Mask mask = b.kept != nullptr ? Mask::none : b.mask;
  for (int64_t row = g.first_row(); row < g.rows; row += g.row_step()) {
    const Pack<T, kWide> x = pack_of<T, kWide>(g, b.x, row);
    const Pack<T, kWide> dy = pack_of<T, kWide>(g, gradient, row);
    Pack<T, kWide> y{}, dx;
    if (mask == Mask::output) y = pack_of<T, kWide>(g, b.y, row);
#pragma unroll
    for (int j = 0; j < kWide; ++j) {
      const float d = cuda::load(x.values[j]) - channels.mean[j];
      const float passed =
          channels.masked(mask, cuda::load(dy.values[j]), d, cuda::load(y.values[j]), j);
      cuda::store(dx.values[j], channels.scale[j] * passed + (slope[j] * d + offset[j]));
    }
    pack_of<kWide>(g, b.dx, row) = dx;
  }
}

int64_t channels_of(const Shape& x) { return x[x.rank() - 1]; }

/// Scratch: partial sums, then slope and offset of each channel.
size_t scratch_bytes_cuda(const Context&, const Shape& x) {
  const int64_t channels = channels_of(x);
  return (cuda::column_floats(x.numel() / channels, channels, 2) + 2 * channels) * sizeof(float);
}

/// Calls body.operator()<T, kWide>(geometry) for the type of x and the widest access.
template <class Body>
void with_columns(const Context& ctx, const Tensor& x, const Body& body) {
  const int64_t channels = channels_of(x.shape), rows = x.numel() / channels;
  check<std::logic_error>(ctx.scratch().size() >= scratch_bytes_cuda(ctx, x.shape),
                          "[batch_norm] scratch has {} bytes; {} are needed", ctx.scratch().size(),
                          scratch_bytes_cuda(ctx, x.shape));
  with_activation_type(x.dtype, [&]<class T>() {
    if (channels % cuda::kPack<T> == 0)
      body.template operator()<T, cuda::kPack<T>>(Columns(rows, channels, cuda::kPack<T>));
    else
      body.template operator()<T, 1>(Columns(rows, channels, 1));
  });
}

template <class T>
T* data(const Tensor& x) {
  return static_cast<T*>(x.data);
}

float* scratch_of(const Context& ctx) { return reinterpret_cast<float*>(ctx.scratch().data()); }
uint32_t* tickets_of(const Context& ctx) { return ctx.handles<CudaHandles>().tickets(); }

/// Queues kernel(g, arguments...) on the grid of g, for sums over rows or for elements.
template <class... Parameters, class... Arguments>
void sum(const Context& ctx, void (*kernel)(Columns, Parameters...), const Columns& g,
         const Arguments&... arguments) {
  cuda::launch(ctx, "batch_norm", kernel, g.grid(), cuda::kThreads, g, arguments...);
}
template <class... Parameters, class... Arguments>
void map(const Context& ctx, void (*kernel)(Columns, Parameters...), const Columns& g,
         const Arguments&... arguments) {
  cuda::launch(ctx, "batch_norm", kernel, g.grid_without_sums(), cuda::kThreads, g, arguments...);
}

template <class T>
Normalise<T> normalise_arguments(const BatchNormParams& params, const BatchNormForward& t) {
  return {.x = data<T>(t.x),
          .residual = data<T>(t.residual),
          .y = data<T>(t.y),
          .gamma = data<float>(t.gamma),
          .beta = data<float>(t.beta),
          .mean = nullptr,
          .rstd = nullptr,
          .variance = nullptr,
          .epsilon = params.epsilon,
          .relu = params.relu};
}

void train_cuda(Context& ctx, const BatchNormParams& params, const BatchNormForward& t) {
  with_columns(ctx, t.x, [&]<class T, int kWide>(const Columns& g) {
    const FinishStatistics<T> finish{.x = data<T>(t.x),
                                     .rows = static_cast<double>(g.rows),
                                     .epsilon = params.epsilon,
                                     .momentum = params.momentum,
                                     .mean = data<float>(t.saved_mean),
                                     .rstd = data<float>(t.saved_rstd),
                                     .running_mean = data<float>(t.running_mean),
                                     .running_var = data<float>(t.running_var)};
    sum(ctx, statistics_kernel<T, kWide>, g, data<T>(t.x), scratch_of(ctx), tickets_of(ctx),
        finish);
    Normalise<T> arguments = normalise_arguments<T>(params, t);
    arguments.mean = data<float>(t.saved_mean);
    arguments.rstd = data<float>(t.saved_rstd);
    map(ctx, normalise_kernel<T, kWide>, g, arguments);
  });
}

void infer_cuda(Context& ctx, const BatchNormParams& params, const BatchNormForward& t) {
  with_columns(ctx, t.x, [&]<class T, int kWide>(const Columns& g) {
    Normalise<T> arguments = normalise_arguments<T>(params, t);
    arguments.mean = data<float>(t.running_mean);
    arguments.variance = data<float>(t.running_var);
    map(ctx, normalise_kernel<T, kWide>, g, arguments);
  });
}

template <class T, int kWide>
auto backward_sums_for(Mask mask) {
  if (mask == Mask::output) return backward_sums_kernel<T, kWide, Mask::output>;
  if (mask == Mask::input) return backward_sums_kernel<T, kWide, Mask::input>;
  return backward_sums_kernel<T, kWide, Mask::none>;
}

void backward_cuda(Context& ctx, const BatchNormParams& params, const BatchNormBackward& t,
                   bool accumulate) {
  with_columns(ctx, t.x, [&]<class T, int kWide>(const Columns& g) {
    float* const coefficients = scratch_of(ctx) + cuda::column_floats(g.rows, g.channels, 2);
    // keeps the sum of two gradients in the memory of dx, so that it is computed once
    T* const kept = t.dresidual.data != nullptr ? data<T>(t.dresidual)
                    : t.dy2.data != nullptr     ? data<T>(t.dx)
                                                : nullptr;
    const BackwardTensors<T> b{.x = data<T>(t.x),
                               .y = data<T>(t.y),
                               .dy = data<T>(t.dy),
                               .dy2 = data<T>(t.dy2),
                               .kept = kept,
                               .dx = data<T>(t.dx),
                               .gamma = data<float>(t.gamma),
                               .beta = data<float>(t.beta),
                               .mean = data<float>(t.saved_mean),
                               .rstd = data<float>(t.saved_rstd),
                               .slope = coefficients,
                               .offset = coefficients + g.channels,
                               .mask = !params.relu          ? Mask::none
                                       : t.y.data != nullptr ? Mask::output
                                                             : Mask::input};
    const FinishGradient<T> finish{b, static_cast<double>(g.rows), data<float>(t.dgamma),
                                   data<float>(t.dbeta), accumulate};
    sum(ctx, backward_sums_for<T, kWide>(b.mask), g, b, scratch_of(ctx), tickets_of(ctx), finish);
    map(ctx, input_gradient_kernel<T, kWide>, g, b);
  });
}

const bool batch_norm_registered =
    batch_norm_train_dispatch.add(Device::cuda, train_cuda) &&
    batch_norm_infer_dispatch.add(Device::cuda, infer_cuda) &&
    batch_norm_backward_dispatch.add(Device::cuda, backward_cuda) &&
    batch_norm_scratch_dispatch.add(Device::cuda, scratch_bytes_cuda);

}  // namespace
}  // namespace tw::ops
