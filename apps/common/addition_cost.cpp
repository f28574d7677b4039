#include "apps/common/addition_cost.h"

#include <algorithm>

#include "apps/common/time_ranks.h"
#include "engine/core/buffer.h"
#include "engine/ops/vector.h"
#include "sparsify/kernels/sparse_ops.h"
#include "sparsify/selector.h"

namespace tw {

LinkCost measure_additions(Context& ctx, Communicator& comm, size_t d, double density) {
  constexpr int rounds = 7, parts = 8;
  const size_t n = size_t{1} << 20;
  const Buffer x(ctx.device(), n * sizeof(float)), y(ctx.device(), n * sizeof(float));
  ops::fill(ctx, x.as<float>(), 1);
  const double adding =
      time_ranks(ctx, comm, rounds, [&](int64_t) { ops::add(ctx, x.as<float>(), y.as<float>()); });

  // entries spread over the vector, as selected ones are; other ranks have other indices
  const size_t k = std::min(d, entries_to_keep(density, d));
  std::vector<float> values(k, 1);
  std::vector<std::vector<uint32_t>> indices(parts);
  std::vector<SparseView> views;
  for (size_t part = 0; part < parts; ++part) {
    for (size_t i = 0; i < k; ++i)
      indices[part].push_back(static_cast<uint32_t>((i * (d / k)) + part % (d / k)));
    views.push_back({indices[part], values});
  }
  const Buffer sum(ctx.device(), d * sizeof(float));
  const auto summing = [&](size_t some) {
    return time_ranks(ctx, comm, rounds, [&](int64_t) {
      sparse_sum(ctx, std::span(views).first(some), sum.as<float>());
    });
  };
  const double all = summing(parts), one = summing(1);
  return {.gamma = adding / static_cast<double>(n),
          .merge = std::max(0.0, all - one) / static_cast<double>((parts - 1) * k)};
}

}  // namespace tw
