#include <cmath>

#include "engine/cuda/cuda_kernel.h"
#include "engine/ops/loss.h"

namespace tw::ops {
namespace {

constexpr int kLossThreads = 1024, kWarps = kLossThreads / 32;

struct Problem {
  const float* logits;
  const int32_t* labels;
  int64_t rows, classes;
  float smoothing, grad_scale;
  float* gradients;  ///< may be null
};

/// Combines the values of a warp's lanes; all of them get the result. The order is fixed.
template <class T, class Combine>
__device__ T over_warp(T value, const Combine& combine) {
  for (int distance = 16; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  return value;
}

/// Sum over the lanes.
template <class T>
__device__ T sum_over_warp(T value) {
  return over_warp(value, [](T a, T b) { return a + b; });
}

/// One row, by the lanes of a warp. Every lane returns the row's sums.
__device__ LossSums row_sums(const Problem& p, int64_t row, float gradient_scale) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float* const x = p.logits + row * p.classes;
  const int32_t label = p.labels[row];
  // no such class: reported as a NaN loss
  const float own = label < p.classes ? x[label] : NAN;

  float largest = -INFINITY;
  for (int64_t c = lane; c < p.classes; c += 32) largest = fmaxf(largest, x[c]);
  largest = over_warp(largest, [](float a, float b) { return fmaxf(a, b); });
  double total = 0, shifted = 0;
  int ahead = 0;
  for (int64_t c = lane; c < p.classes; c += 32) {
    total += expf(x[c] - largest);
    shifted += x[c] - largest;
    // a comparison with NaN is false, so a NaN row is never correct
    ahead += !(x[c] < own || (x[c] == own && c >= label));
  }
  total = sum_over_warp(total), shifted = sum_over_warp(shifted), ahead = sum_over_warp(ahead);

  if (p.gradients != nullptr) {
    const float inverse = static_cast<float>(1.0 / total);
    const float even = p.smoothing / static_cast<float>(p.classes);
    const float scale = label < p.classes ? gradient_scale : NAN;
    for (int64_t c = lane; c < p.classes; c += 32) {
      const float target = c == label ? 1.0f - p.smoothing : 0.0f;
      p.gradients[row * p.classes + c] =
          scale * (expf(x[c] - largest) * inverse - even) - scale * target;
    }
  }
  const double log_total = log(total);
  LossSums sums;
  sums.loss = (1.0 - p.smoothing) * (log_total - (own - largest)) +
              p.smoothing * (log_total - shifted / static_cast<double>(p.classes));
  sums.top1 = ahead < 1, sums.top5 = ahead < 5, sums.count = 1;
  return sums;
}

/// One block, one warp per row: batches are short, and gradients need the count of all rows.
__global__ void __launch_bounds__(kLossThreads) loss_kernel(Problem p, LossSums* sums) {
  alignas(LossSums) __shared__ std::byte memory[kWarps * sizeof(LossSums)];
  LossSums* const of_warp =
      reinterpret_cast<LossSums*>(memory);  // shared memory runs no constructors
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  int count = 0;
  for (int64_t first = 0; first < p.rows; first += kLossThreads) {
    const int64_t row = first + threadIdx.x;
    count += __syncthreads_count(row < p.rows && p.labels[row] >= 0);
  }
  const float gradient_scale = p.grad_scale / static_cast<float>(max(count, 1));
  LossSums mine;
  for (int64_t row = warp; row < p.rows; row += kWarps) {
    if (p.labels[row] >= 0) {
      mine += row_sums(p, row, gradient_scale);
    } else if (p.gradients != nullptr) {
      for (int64_t c = lane; c < p.classes; c += 32) p.gradients[row * p.classes + c] = 0.0f;
    }
  }
  if (lane == 0) of_warp[warp] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  LossSums all;
  for (int w = 0; w < kWarps; ++w) all += of_warp[w];
  *sums += all;
}

void softmax_cross_entropy_cuda(Context& ctx, const Tensor& logits, const Tensor& labels,
                                float label_smoothing, float grad_scale, const Tensor& dlogits,
                                const Tensor& sums) {
  const Problem problem{.logits = static_cast<const float*>(logits.data),
                        .labels = static_cast<const int32_t*>(labels.data),
                        .rows = logits.shape[0],
                        .classes = logits.shape[1],
                        .smoothing = label_smoothing,
                        .grad_scale = grad_scale,
                        .gradients = static_cast<float*>(dlogits.data)};
  cuda::launch(ctx, "softmax_cross_entropy", loss_kernel, 1, kLossThreads, problem,
               static_cast<LossSums*>(sums.data));
}

const bool loss_registered =
    softmax_cross_entropy_dispatch.add(Device::cuda, softmax_cross_entropy_cuda);

}  // namespace
}  // namespace tw::ops
