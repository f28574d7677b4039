#include "sparsify/encoding/residual_return.h"

#include "sparsify/kernels/sparse_ops.h"

namespace tw {

void ResidualReturn::rounding(Context& ctx, const SparseCodec& codec, SparseVector& entries,
                              std::span<float> residual, const std::optional<RoundingDraws>& draws,
                              std::span<const uint32_t> borders) {
  codec.round(entries, &entries_, borders, draws);
  if (!residual.empty()) scatter_add(ctx, entries_.view(), residual);
}

void ResidualReturn::missing(Context& ctx, const SparseView& mine, std::span<const uint32_t> kept,
                             std::span<float> residual) {
  if (residual.empty()) return;
  entries_.count = 0;
  entries_.reserve(mine.indices.size());
  auto next = kept.begin();
  for (size_t i = 0; i < mine.indices.size(); ++i) {
    const uint32_t index = mine.indices[i];
    while (next != kept.end() && *next < index) ++next;
    if (next == kept.end() || *next != index) entries_.push(index, mine.values[i]);
  }
  scatter_add(ctx, entries_.view(), residual);
}

}  // namespace tw
