// ResidualReturn: the way back to the residual for what a rank selected and could not send.
#pragma once

#include "sparsify/encoding/sparse_codec.h"

namespace tw {

/// Adds to the residual what a rank selected but could not send.
class ResidualReturn {
 public:
  /// Rounds `entries` for the codec and returns the rounding errors.
  void rounding(Context& ctx, const SparseCodec& codec, SparseVector& entries,
                std::span<float> residual);
  /// Returns the selected entries whose index is not in `kept`; both ascend.
  void missing(Context& ctx, const SparseView& mine, std::span<const uint32_t> kept,
               std::span<float> residual);

 private:
  SparseVector entries_;
};

}  // namespace tw
