// The fused SGD update over a flat range, in PyTorch's convention:
//   G = scale * g + weight_decay * w;  m = momentum * m + G;
//   w -= lr * m   or, Nesterov,   w -= lr * (G + momentum * m)
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/core/context.h"

namespace tw::ops {

struct SgdParams {
  float lr, momentum, weight_decay;
  bool nesterov;
  float scale;  ///< 1 / P turns the sum over ranks into their mean
};

/// Decay bounds under which every element decays.
inline constexpr std::array<uint32_t, 1> kDecayAll{0};

/// Updates w and m from g (equal lengths) in one pass. With momentum 0, m is not read or written
/// and may be empty. `decay_bounds`: ascending indices at which weight decay starts, stops, starts,
/// ...; empty: a decay of 0. Throws UserError on unequal lengths or descending bounds.
void sgd_update(Context& ctx, const SgdParams& params, std::span<const uint32_t> decay_bounds,
                std::span<const float> g, std::span<float> m, std::span<float> w);

using SgdUpdateFunction = void(Context&, const SgdParams&, std::span<const uint32_t>,
                               std::span<const float>, std::span<float>, std::span<float>);
extern DispatchTable<SgdUpdateFunction> sgd_update_dispatch;

}  // namespace tw::ops
