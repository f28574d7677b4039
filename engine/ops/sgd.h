// The fused SGD update over a flat range, in PyTorch's convention:
//   G = scale * g + weight_decay * w;  m = momentum * m + G;
//   w -= lr * m   or, Nesterov,   w -= lr * (G + momentum * m)
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "engine/core/context.h"
#include "engine/ops/step_inputs.h"

namespace tw::ops {

struct SgdParams {
  float lr, momentum, weight_decay;
  bool nesterov;
  float scale;  ///< 1 / P turns the sum over ranks into their mean
};

/// Updates w and m from g (equal lengths) in one pass. With momentum 0, m is not read or written
/// and may be empty. `decay_bounds`: ascending indices at which weight decay starts, stops, starts,
/// ...; empty: a decay of 0. `corrected_bounds`: likewise, where g contains its momentum: only
/// weight decay has momentum there, w -= lr * m or (Nesterov) as above with G = weight_decay * w,
/// then w -= lr * scale * g. `recorded`, if given, has the learning rate of a recorded step, in
/// place of `params.lr`, and stops updates after a NaN or infinity.
/// Throws UserError on unequal lengths or descending bounds.
void sgd_update(Context& ctx, const SgdParams& params, std::span<const uint32_t> decay_bounds,
                std::span<const float> g, std::span<float> m, std::span<float> w,
                std::span<const uint32_t> corrected_bounds = {},
                const RecordedStep* recorded = nullptr);

inline constinit DispatchTable<decltype(sgd_update)> sgd_update_dispatch{"sgd_update"};

/// Calls visit(begin, end, decays, corrected) for the ranges of n elements, in order. The bounds
/// are ascending indices at which a property starts, stops, starts, ...
template <class Visit>
void for_each_sgd_range(std::span<const uint32_t> decay_bounds,
                        std::span<const uint32_t> corrected_bounds, size_t n, const Visit& visit) {
  size_t decays = 0, corrected = 0;  // bounds at or before `begin`
  for (size_t begin = 0; begin < n;) {
    while (decays < decay_bounds.size() && decay_bounds[decays] <= begin) ++decays;
    while (corrected < corrected_bounds.size() && corrected_bounds[corrected] <= begin) ++corrected;
    size_t end = n;
    if (decays < decay_bounds.size()) end = std::min<size_t>(end, decay_bounds[decays]);
    if (corrected < corrected_bounds.size())
      end = std::min<size_t>(end, corrected_bounds[corrected]);
    visit(begin, end, decays % 2 == 1, corrected % 2 == 1);
    begin = end;
  }
}

}  // namespace tw::ops
