// The sums of the CPU in the same order: one thread sums one lane of a block of the vector.
#include <algorithm>

#include "engine/core/buffer.h"
#include "engine/cuda/cuda_kernel.h"
#include "sparsify/kernels/magnitude.h"
#include "sparsify/kernels/moments.h"

namespace tw::cuda {

namespace {

constexpr int kLanes = static_cast<int>(kMeasureLanes);
constexpr int kMeasureThreads = 64;  // eight blocks of the vector: enough of them for every GPU
static_assert(sizeof(Moments) == 32 && sizeof(Tail) == 16);

struct Lane {
  double sum = 0, square = 0, magnitude = 0;
  float largest = 0;

  __device__ void add(float u) {
    const double wide = u;
    sum += wide;
    square = fma(wide, wide, square);  // the square is exact: fused or not, the bits are the same
    magnitude += fabs(wide);
    // as the CPU compares: a NaN is not larger
    const float size = fabsf(u);
    largest = size > largest ? size : largest;
  }
};

template <bool kAdd>
__global__ void __launch_bounds__(kMeasureThreads)
    measure_kernel(int64_t n, const float* g, float* e, Moments* blocks) {
  __shared__ Lane lanes[kMeasureThreads];
  constexpr int kBatch = 16;  // loads in flight
  constexpr int64_t kBlock = kMeasureBlock;
  const int t = static_cast<int>(threadIdx.x), lane = t % kLanes;
  const int64_t block = blockIdx.x * int64_t{kMeasureThreads / kLanes} + t / kLanes;
  const int64_t first = block * kBlock + lane, end = min(n, (block + 1) * kBlock);
  Lane mine;
  for (int64_t begin = first; begin < end; begin += int64_t{kBatch} * kLanes) {
    float u[kBatch], more[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int64_t i = begin + b * kLanes;
      u[b] = i < end ? e[i] : 0.0f;
      more[b] = kAdd && i < end ? g[i] : 0.0f;
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int64_t i = begin + b * kLanes;
      if (i >= end) break;
      if (kAdd) e[i] = u[b] += more[b];
      mine.add(u[b]);
    }
  }
  lanes[t] = mine;
  __syncthreads();
  if (lane > 0 || block * kBlock >= n) return;
  Moments total;
  for (int j = 0; j < kLanes; ++j) {
    total.sum += lanes[t + j].sum;
    total.square += lanes[t + j].square;
    total.magnitude += lanes[t + j].magnitude;
    total.largest = max(total.largest, lanes[t + j].largest);
  }
  blocks[block] = total;
}

void measure_cuda(Context& ctx, std::span<const float> g, std::span<float> e,
                  std::span<Moments> blocks) {
  if (blocks.empty()) return;
  auto& handles = ctx.handles<CudaHandles>();
  constexpr size_t each = kMeasureThreads / kLanes;
  // the kernel writes right into the host's memory: 32 bytes for 4096 elements
  auto* const host = reinterpret_cast<Moments*>(handles.pinned(blocks.size_bytes()));
  const auto grid = static_cast<unsigned>((blocks.size() + each - 1) / each);
  const auto kernel = g.empty() ? measure_kernel<false> : measure_kernel<true>;
  launch(ctx, "measure", kernel, grid, kMeasureThreads, std::ssize(e),
         g.empty() ? nullptr : g.data(), e.data(), host);
  handles.synchronize();
  std::copy_n(host, blocks.size(), blocks.begin());
}

__global__ void __launch_bounds__(kMeasureThreads)
    tail_kernel(int64_t n, const float* u, uint32_t bits, Tail* blocks) {
  __shared__ Tail lanes[kMeasureThreads];
  constexpr int64_t kBlock = kMeasureBlock;
  const int t = static_cast<int>(threadIdx.x), lane = t % kLanes;
  const int64_t block = blockIdx.x * int64_t{kMeasureThreads / kLanes} + t / kLanes;
  const int64_t end = min(n, (block + 1) * kBlock);
  Tail mine;
#pragma unroll 8
  for (int64_t i = block * kBlock + lane; i < end; i += kLanes) {
    if (magnitude_bits(u[i]) < bits) continue;
    const float size = fabsf(u[i]);
    mine.sum += double{size};
    mine.least = min(mine.least, size);
    ++mine.count;
  }
  lanes[t] = mine;
  __syncthreads();
  if (lane > 0 || block * kBlock >= n) return;
  for (int j = 1; j < kLanes; ++j) {
    mine.sum += lanes[t + j].sum;
    mine.least = min(mine.least, lanes[t + j].least);
    mine.count += lanes[t + j].count;
  }
  blocks[block] = mine;
}

void tail_cuda(Context& ctx, std::span<const float> u, uint32_t bits, std::span<Tail> blocks) {
  if (blocks.empty()) return;
  auto& handles = ctx.handles<CudaHandles>();
  constexpr size_t each = kMeasureThreads / kLanes;
  auto* const host = reinterpret_cast<Tail*>(handles.pinned(blocks.size_bytes()));
  const auto grid = static_cast<unsigned>((blocks.size() + each - 1) / each);
  launch(ctx, "tail", tail_kernel, grid, kMeasureThreads, std::ssize(u), u.data(), bits, host);
  handles.synchronize();
  std::copy_n(host, blocks.size(), blocks.begin());
}

const bool moments_registered = measure_dispatch.add(Device::cuda, measure_cuda);
const bool tail_registered = tail_dispatch.add(Device::cuda, tail_cuda);

}  // namespace
}  // namespace tw::cuda
