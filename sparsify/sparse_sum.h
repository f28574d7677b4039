// The sum of several sparse vectors as a dense one.
#pragma once

#include <span>

#include "engine/context.h"
#include "sparsify/sparse_vector.h"

namespace tw {

/// sum = 0, then sum[i] += v for every entry of every part, in the order of the parts: the same
/// bits wherever it runs. Indices lie below sum.size().
void sparse_sum(Context& ctx, std::span<const SparseView> parts, std::span<float> sum);

using SparseSumBody = void(Context&, std::span<const SparseView>, std::span<float>);
extern Bodies<SparseSumBody> sparse_sum_bodies;

}  // namespace tw
