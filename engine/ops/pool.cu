#include "engine/cuda/cuda_kernel.h"
#include "engine/ops/element.h"
#include "engine/ops/pool.h"

namespace tw::ops {
namespace {

/// `x` is the input of forward, `y` its output; a thread handles kWide channels of a pixel.
struct PoolGeometry {
  int64_t height, width, packs, out_height, out_width;
  int64_t kernel, stride, padding;
  bool maximum;

  PoolGeometry(const PoolParams& params, const Tensor& x, const Tensor& y, int wide)
      : height(x.shape[1]),
        width(x.shape[2]),
        packs(x.shape[3] / wide),
        out_height(y.shape[1]),
        out_width(y.shape[2]),
        kernel(params.kernel),
        stride(params.stride),
        padding(params.padding),
        maximum(params.kind == PoolKind::max) {}
};

/// Image, row, column and channel pack of the element that thread i computes.
struct ElementIndex {
  int64_t n, h, w, pack;

  __device__ ElementIndex(int64_t i, int64_t height, int64_t width, int64_t packs) {
    const int64_t pixel = cuda::divide(i, packs), row = cuda::divide(pixel, width);
    n = cuda::divide(row, height);
    h = row - n * height;
    w = pixel - row * width;
    pack = i - pixel * packs;
  }
};

template <class T, int kWide>
struct PoolForward {
  using Values = cuda::Pack<T, kWide>;
  using Positions = cuda::Pack<uint8_t, kWide>;
  PoolGeometry g;
  const Values* x;
  Values* y;
  Positions* argmax;

  __device__ void operator()(int64_t i) const {
    const ElementIndex at(i, g.out_height, g.out_width, g.packs);
    const int64_t top = at.h * g.stride - g.padding, left = at.w * g.stride - g.padding;
    float best[kWide] = {};
    Positions where{};
    bool first = true;
    for (int64_t r = max(int64_t{0}, -top); r < min(g.kernel, g.height - top); ++r)
      for (int64_t s = max(int64_t{0}, -left); s < min(g.kernel, g.width - left); ++s) {
        const int64_t pixel = (at.n * g.height + top + r) * g.width + left + s;
        const Values tap = x[pixel * g.packs + at.pack];
#pragma unroll
        for (int j = 0; j < kWide; ++j) {
          const float value = cuda::load(tap.values[j]);
          if (!g.maximum) {
            best[j] += value;
          } else if (first || value > best[j] || value != value) {  // a NaN wins
            best[j] = value;
            where.values[j] = static_cast<uint8_t>(r * g.kernel + s);
          }
        }
        first = false;
      }
    const float scale = g.maximum ? 1.0f : 1.0f / static_cast<float>(g.kernel * g.kernel);
    Values result;
#pragma unroll
    for (int j = 0; j < kWide; ++j) cuda::store(result.values[j], scale * best[j]);
    y[i] = result;
    if (g.maximum) argmax[i] = where;
  }
};

/// Each input pixel gathers from the windows that cover it, so no two threads write one pixel.
template <class T, int kWide>
struct PoolBackward {
  using Values = cuda::Pack<T, kWide>;
  using Positions = cuda::Pack<uint8_t, kWide>;
  PoolGeometry g;
  const Values* dy;
  Values* dx;
  const Positions* argmax;

  /// First window along one axis that covers index `shifted` - padding.
  __device__ int64_t first_window(int64_t shifted) const {
    return shifted < g.kernel ? 0 : cuda::divide(shifted - g.kernel, g.stride) + 1;
  }

  __device__ void operator()(int64_t i) const {
    const ElementIndex at(i, g.height, g.width, g.packs);
    const int64_t h = at.h + g.padding, w = at.w + g.padding;
    const int64_t p_end = min(g.out_height, cuda::divide(h, g.stride) + 1);
    const int64_t q_end = min(g.out_width, cuda::divide(w, g.stride) + 1);
    float sum[kWide] = {};
    for (int64_t p = first_window(h); p < p_end; ++p)
      for (int64_t q = first_window(w); q < q_end; ++q) {
        const int64_t from = ((at.n * g.out_height + p) * g.out_width + q) * g.packs + at.pack;
        const Values gradient = dy[from];
        const auto position =
            static_cast<uint8_t>((h - p * g.stride) * g.kernel + w - q * g.stride);
        Positions winner{};
        if (g.maximum) winner = argmax[from];
#pragma unroll
        for (int j = 0; j < kWide; ++j)
          if (!g.maximum || winner.values[j] == position) sum[j] += cuda::load(gradient.values[j]);
      }
    const float scale = g.maximum ? 1.0f : 1.0f / static_cast<float>(g.kernel * g.kernel);
    Values result;
#pragma unroll
    for (int j = 0; j < kWide; ++j) cuda::store(result.values[j], scale * sum[j]);
    dx[i] = result;
  }
};

/// Runs Body for each element of `to`; `x` is the input of forward, `y` its output.
template <template <class, int> class Body>
void run_pool(Context& ctx, const PoolParams& params, const Tensor& x, const Tensor& y,
              const Tensor& from, const Tensor& to, const Tensor& argmax) {
  const auto run = [&]<class T, int kWide>() {
    using Values = cuda::Pack<T, kWide>;
    using Positions = cuda::Pack<uint8_t, kWide>;
    cuda::expect_32_bits("pool", to.numel() / kWide);
    cuda::for_each(
        ctx, "pool", to.numel() / kWide,
        Body<T, kWide>{PoolGeometry(params, x, y, kWide), static_cast<const Values*>(from.data),
                       static_cast<Values*>(to.data), static_cast<Positions*>(argmax.data)});
  };
  with_activation_type(x.dtype, [&]<class T>() {
    if (x.shape[3] % cuda::kPack<T> == 0)
      run.template operator()<T, cuda::kPack<T>>();
    else
      run.template operator()<T, 1>();
  });
}

void forward_cuda(Context& ctx, const PoolParams& params, const Tensor& x, const Tensor& y,
                  const Tensor& argmax) {
  run_pool<PoolForward>(ctx, params, x, y, x, y, argmax);
}

void backward_cuda(Context& ctx, const PoolParams& params, const Tensor& dy, const Tensor& argmax,
                   const Tensor& dx) {
  run_pool<PoolBackward>(ctx, params, dx, dy, dy, dx, argmax);
}

const bool pool_registered = pool_forward_dispatch.add(Device::cuda, forward_cuda) &&
                             pool_backward_dispatch.add(Device::cuda, backward_cuda);

}  // namespace
}  // namespace tw::ops
