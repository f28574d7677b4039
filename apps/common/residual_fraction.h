// The share of a vector that a selection leaves behind.
#pragma once

#include <span>

#include "sparsify/kernels/moments.h"

namespace tw {

/// ||e||^2 / ||u||^2 for the residual e of u; 0 when u is zero.
inline double residual_fraction(Context& ctx, const Moments& u, std::span<float> e,
                                std::vector<Moments>& blocks) {
  return u.square > 0 ? add_and_moments(ctx, {}, e, blocks).square / u.square : 0;
}

}  // namespace tw
