// Operations of sparse vectors on dense ones. Sparse entries are in host memory, dense vectors in
// memory of ctx's device.
#pragma once

#include <span>

#include "engine/core/context.h"
#include "sparsify/kernels/sparse_vector.h"

namespace tw {

/// Whether each index is above the one before it and all are below d.
bool ascend_below(std::span<const uint32_t> indices, size_t d);

/// sum = 0, then sum[i] += v for every entry of every part, in the order of the parts: the same
/// bits on every device. Indices are below sum.size().
void sparse_sum(Context& ctx, std::span<const SparseView> parts, std::span<float> sum);

/// x[i] += v for every entry.
void scatter_add(Context& ctx, const SparseView& entries, std::span<float> x);
/// x[i] = 0 for every index at which `sum` is not 0. No index occurs twice.
void zero_where_sent(Context& ctx, std::span<const uint32_t> indices, std::span<const float> sum,
                     std::span<float> x);

inline constinit DispatchTable<decltype(sparse_sum)> sparse_sum_dispatch{"sparse_sum"};
inline constinit DispatchTable<decltype(scatter_add)> scatter_add_dispatch{"scatter_add"};
inline constinit DispatchTable<decltype(zero_where_sent)> zero_where_sent_dispatch{
    "zero_where_sent"};

}  // namespace tw
