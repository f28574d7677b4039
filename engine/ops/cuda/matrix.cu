#include "engine/cuda/column_sums.h"
#include "engine/ops/cuda/matrix.h"
#include "engine/ops/element.h"

namespace tw::ops {
namespace {

struct AddBias {
  const float* bias;
  int64_t channels;
  __device__ float operator()(int64_t i, float x) const { return x + bias[i % channels]; }
};

struct WriteSums {
  float* sums;
  bool accumulate;
  __device__ void operator()(int64_t c, const double (&total)[1]) const {
    sums[c] = static_cast<float>(total[0]) + (accumulate ? sums[c] : 0.0f);
  }
};

template <class T, int kWide>
__global__ void __launch_bounds__(cuda::kThreads)
    column_sums_kernel(cuda::Columns g, const T* x, bf16* rounded, float* partial,
                       uint32_t* tickets, WriteSums finish) {
  float sums[1][kWide] = {};
  if (g.active())
    for (int64_t row = g.first_row(); row < g.rows; row += g.row_step()) {
      const auto pack =
          reinterpret_cast<const cuda::Pack<T, kWide>*>(x + row * g.channels)[g.pack()];
#pragma unroll
      for (int j = 0; j < kWide; ++j) {
        const float value = cuda::load(pack.values[j]);
        sums[0][j] += value;
        // as convert() rounds
        if (rounded != nullptr)
          rounded[row * g.channels + g.pack() * kWide + j] = static_cast<bf16>(value);
      }
    }
  cuda::reduce_columns<1>(g, sums, partial, tickets, finish);
}

int64_t last_dimension(const Shape& x) { return x[x.rank() - 1]; }

}  // namespace

void add_bias(Context& ctx, const Tensor& x, const float* bias, const Tensor& y) {
  const AddBias body{bias, last_dimension(y.shape)};
  with_activation_type(x.dtype, [&]<class From>() {
    with_activation_type(y.dtype, [&]<class To>() {
      cuda::map(ctx, "add_bias", y.numel(), body, y.as<To>().data(),
                static_cast<const From*>(x.data));
    });
  });
}

size_t column_sums_bytes(const Shape& x) {
  const int64_t channels = last_dimension(x);
  return cuda::column_floats(x.numel() / channels, channels, 1) * sizeof(float);
}

void column_sums(Context& ctx, const Tensor& x, std::byte* scratch, bool accumulate, float* sums,
                 bf16* rounded) {
  const int64_t channels = last_dimension(x.shape);
  with_activation_type(x.dtype, [&]<class T>() {
    const auto run = [&]<int kWide>() {
      const cuda::Columns g(x.numel() / channels, channels, kWide);
      cuda::launch(ctx, "column_sums", column_sums_kernel<T, kWide>, g.grid(), cuda::kThreads, g,
                   static_cast<const T*>(x.data), rounded, reinterpret_cast<float*>(scratch),
                   ctx.handles<CudaHandles>().tickets(), WriteSums{sums, accumulate});
    };
    if (channels % cuda::kPack<T> == 0 && cuda::aligned_for(x.as<T>().data(), cuda::kPack<T>))
      run.template operator()<cuda::kPack<T>>();
    else
      run.template operator()<1>();
  });
}

}  // namespace tw::ops
