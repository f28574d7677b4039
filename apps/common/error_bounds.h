// The relative error of sparsification, ||u - S(u)||^2 / ||u||^2: measured, and in closed form.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "sparsify/kernels/moments.h"

namespace tw {

/// ||e||^2 / ||u||^2 of the residual e of u, whose moments are given; 0 when u is zero. `blocks` is
/// scratch memory.
inline double residual_fraction(Context& ctx, const Moments& u, std::span<float> e,
                                std::vector<Moments>& blocks) {
  return u.square > 0 ? add_and_moments(ctx, {}, e, blocks).square / u.square : 0;
}

/// Relative error of Top-k of independent normal entries; density = k / d, here and below.
double left_of_gaussian(double density);

/// Top-k of independent Laplace entries.
inline double left_of_laplace(double density) {
  const double t = -std::log(density);  // the k-th magnitude over the mean magnitude
  return 1 - density * (t * t / 2 + t + 1);
}

/// Top-k of entries uniform in [-a, a].
inline double left_of_uniform(double density) { return std::pow(1 - density, 3); }

/// Rand-k of any vector, in expectation; an upper bound for Top-k of any vector.
inline double left_of_random(double density) { return 1 - density; }

/// The tighter upper bound for Top-k of bell-shaped vectors that others quote from Shi et al. 2019
/// (arXiv 1911.08772): their abstract claims one, its form is second-hand.
inline double bell_bound(double density) { return (1 - density) * (1 - density); }

}  // namespace tw
