// The fused SGD update over a flat range, PyTorch's convention:
//   G = scale * g + weight_decay * w;  m = momentum * m + G;
//   w -= lr * m   or, Nesterov,   w -= lr * (G + momentum * m)
#pragma once

#include <cstdint>
#include <span>

#include "engine/core/context.h"

namespace tw::ops {

struct SgdParams {
  float lr, momentum, weight_decay;
  bool nesterov;
  float scale;  ///< 1 / P turns the ranks' sum into their mean
};

/// One pass over w, m and g (equal lengths). With momentum 0, m is not touched.
void sgd_update(Context& ctx, const SgdParams& params, std::span<const float> g, std::span<float> m,
                std::span<float> w);

/// The same, with weight decay in some ranges only: element i decays when the number of `bounds`
/// (ascending) at or below i is odd. One pass, whatever the number of ranges.
void sgd_update(Context& ctx, const SgdParams& params, std::span<const uint32_t> bounds,
                std::span<const float> g, std::span<float> m, std::span<float> w);

/// Index of the first NaN or infinity in x, or x.size() when all are finite.
size_t first_nonfinite(Context& ctx, std::span<const float> x);

using SgdUpdateBody = void(Context&, const SgdParams&, std::span<const float>, std::span<float>,
                           std::span<float>);
extern DispatchTable<SgdUpdateBody> sgd_update_dispatch;
using SgdRangesBody = void(Context&, const SgdParams&, std::span<const uint32_t>,
                           std::span<const float>, std::span<float>, std::span<float>);
extern DispatchTable<SgdRangesBody> sgd_ranges_dispatch;
using FirstNonfiniteBody = size_t(Context&, std::span<const float>);
extern DispatchTable<FirstNonfiniteBody> first_nonfinite_dispatch;

}  // namespace tw::ops
