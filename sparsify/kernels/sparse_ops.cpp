#include "sparsify/kernels/sparse_ops.h"

#include <algorithm>

#include "engine/core/parallel.h"

#define TW_KERNELS "sparsify/kernels/sparse_ops.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::TW_CPU {

inline bool ascend_below(std::span<const uint32_t> indices, size_t d) {
  bool good = indices.empty() || indices.back() < d;
  for (size_t i = 1; i < indices.size(); ++i) good &= indices[i - 1] < indices[i];
  return good;
}

}  // namespace tw::TW_CPU
#else
namespace tw {

void sparse_sum(Context& ctx, std::span<const SparseView> parts, std::span<float> sum) {
  sparse_sum_dispatch(ctx.device(), ctx, parts, sum);
}

void scatter_add(Context& ctx, const SparseView& entries, std::span<float> x) {
  if (!entries.indices.empty()) scatter_add_dispatch(ctx.device(), ctx, entries, x);
}

void zero_where_sent(Context& ctx, std::span<const uint32_t> indices, std::span<const float> sum,
                     std::span<float> x) {
  if (!indices.empty()) zero_where_sent_dispatch(ctx.device(), ctx, indices, sum, x);
}

bool ascend_below(std::span<const uint32_t> indices, size_t d) {
  return TW_KERNEL(ascend_below, indices, d);
}

namespace {

// one slice at a time, so that it stays in the second-level cache for all parts
constexpr size_t kSlice = size_t{1} << 16;

void sparse_sum_cpu(Context& ctx, std::span<const SparseView> parts, std::span<float> sum) {
  parallel_for(ctx, sum.size(), kSlice, [&](size_t begin, size_t end) {
    std::fill(sum.begin() + begin, sum.begin() + end, 0.0f);
    for (const auto& [indices, values] : parts) {
      const auto first = std::ranges::lower_bound(indices, begin);
      for (size_t i = first - indices.begin(); i < indices.size() && indices[i] < end; ++i)
        sum[indices[i]] += values[i];
    }
  });
}

void scatter_add_cpu(Context&, const SparseView& entries, std::span<float> x) {
  for (size_t i = 0; i < entries.indices.size(); ++i) x[entries.indices[i]] += entries.values[i];
}

void zero_where_sent_cpu(Context&, std::span<const uint32_t> indices, std::span<const float> sum,
                         std::span<float> x) {
  for (uint32_t i : indices)
    if (sum[i] != 0) x[i] = 0;
}

const bool sparse_ops_registered = sparse_sum_dispatch.add(Device::cpu, sparse_sum_cpu) &&
                                   scatter_add_dispatch.add(Device::cpu, scatter_add_cpu) &&
                                   zero_where_sent_dispatch.add(Device::cpu, zero_where_sent_cpu);

}  // namespace

}  // namespace tw
#endif
