// ResidualReturn: adds to the residual what a rank selected but could not send.
#pragma once

#include "sparsify/encoding/sparse_codec.h"

namespace tw {

class ResidualReturn {
 public:
  /// Rounds `entries` for the codec and adds the rounding errors to the residual. `draws` and
  /// `borders`: as SparseCodec::round.
  void rounding(Context& ctx, const SparseCodec& codec, SparseVector& entries,
                std::span<float> residual, const std::optional<RoundingDraws>& draws,
                std::span<const uint32_t> borders = {});
  /// Adds the entries of `mine` whose index is not in `kept` to the residual. Both ascend.
  void missing(Context& ctx, const SparseView& mine, std::span<const uint32_t> kept,
               std::span<float> residual);

 private:
  SparseVector entries_;
};

}  // namespace tw
