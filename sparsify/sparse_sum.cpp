#include "sparsify/sparse_sum.h"

#include <algorithm>

#include "engine/parallel.h"

namespace tw {

constinit Bodies<SparseSumBody> sparse_sum_bodies{"sparse_sum"};

void sparse_sum(Context& ctx, std::span<const SparseView> parts, std::span<float> sum) {
  sparse_sum_bodies(ctx.device(), ctx, parts, sum);
}

namespace {

// a slice stays in the second-level cache from its zeros to the last rank's entries
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

const bool registered = sparse_sum_bodies.add(Device::cpu, sparse_sum_cpu);

}  // namespace

}  // namespace tw
