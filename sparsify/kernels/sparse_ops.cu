#include <algorithm>
#include <array>

#include "engine/cuda/cuda_kernel.h"
#include "sparsify/kernels/sparse_ops.h"
#include "sparsify/kernels/sparse_sum_cuda.h"

namespace tw::cuda {

namespace {

struct Scatter {
  const uint32_t* indices;
  const float* values;
  float* x;
  __device__ void operator()(int64_t j) const { x[indices[j]] += values[j]; }
};
struct ClearWhereMoved {
  const uint32_t* indices;
  const float* sum;
  float* x;
  __device__ void operator()(int64_t j) const {
    const uint32_t i = indices[j];
    if (sum[i] != 0) x[i] = 0;
  }
};

/// Parts with so few entries that one block adds them all, in order. In memory the values of a part
/// follow its indices, and the next part follows.
struct ShortParts {
  static constexpr size_t kMost = 64;
  static constexpr size_t kMostEntries = 4096;  // of each
  uint32_t count = 0;
  std::array<uint32_t, kMost> lengths{};
};

constexpr int kShortThreads = 1024;
__global__ void __launch_bounds__(kShortThreads)
    add_short_parts_kernel(ShortParts parts, const uint32_t* entries, float* x) {
  for (uint32_t part = 0; part < parts.count; ++part) {
    const uint32_t n = parts.lengths[part];
    const auto* const values = reinterpret_cast<const float*>(entries + n);
    for (uint32_t j = threadIdx.x; j < n; j += kShortThreads) x[entries[j]] += values[j];
    entries += 2 * n;
    __syncthreads();
  }
}

}  // namespace

size_t staged_bytes(std::span<const SparseView> parts) {
  size_t bytes = 0;
  for (const SparseView& part : parts)
    bytes += part.indices.size_bytes() + part.values.size_bytes();
  return bytes;
}

void stage(std::span<const SparseView> parts, std::byte* memory) {
  for (const SparseView& part : parts) {
    memory = std::ranges::copy(std::as_bytes(part.indices), memory).out;
    memory = std::ranges::copy(std::as_bytes(part.values), memory).out;
  }
}

void add_staged(Context& ctx, std::span<const SparseView> parts, const std::byte* staged,
                std::span<float> x) {
  size_t longest = 0;
  for (const SparseView& part : parts) longest = std::max(longest, part.indices.size());
  const auto* const first = reinterpret_cast<const uint32_t*>(staged);
  if (parts.size() > 1 && parts.size() <= ShortParts::kMost &&
      longest <= ShortParts::kMostEntries) {
    ShortParts all;
    for (const SparseView& part : parts)
      all.lengths[all.count++] = static_cast<uint32_t>(part.indices.size());
    if (longest > 0)
      launch(ctx, "sparse_sum", add_short_parts_kernel, 1, kShortThreads, all, first, x.data());
    return;
  }
  const uint32_t* at = first;
  for (const SparseView& part : parts) {
    const size_t n = part.indices.size();
    for_each(ctx, "sparse_sum", static_cast<int64_t>(n),
             Scatter{at, reinterpret_cast<const float*>(at + n), x.data()});
    at += 2 * n;
  }
}

namespace {

/// Kernels read each entry once, from host memory.
void add_parts(Context& ctx, std::span<const SparseView> parts, std::span<float> x) {
  std::byte* const staged = ctx.handles<CudaHandles>().pinned(staged_bytes(parts));
  stage(parts, staged);
  add_staged(ctx, parts, staged, x);
}

void sparse_sum_cuda(Context& ctx, std::span<const SparseView> parts, std::span<float> sum) {
  if (sum.empty()) return;
  expect(cudaMemsetAsync(sum.data(), 0, sum.size_bytes(), stream(ctx)), "sparse_sum");
  add_parts(ctx, parts, sum);
}

void scatter_add_cuda(Context& ctx, const SparseView& entries, std::span<float> x) {
  add_parts(ctx, {&entries, 1}, x);
}

void zero_where_sent_cuda(Context& ctx, std::span<const uint32_t> indices,
                          std::span<const float> sum, std::span<float> x) {
  auto* const staged =
      reinterpret_cast<uint32_t*>(ctx.handles<CudaHandles>().pinned(indices.size_bytes()));
  std::ranges::copy(indices, staged);
  for_each(ctx, "zero_where_sent", std::ssize(indices),
           ClearWhereMoved{staged, sum.data(), x.data()});
}

const bool sparse_ops_registered = sparse_sum_dispatch.add(Device::cuda, sparse_sum_cuda) &&
                                   scatter_add_dispatch.add(Device::cuda, scatter_add_cuda) &&
                                   zero_where_sent_dispatch.add(Device::cuda, zero_where_sent_cuda);

}  // namespace
}  // namespace tw::cuda
