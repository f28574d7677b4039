// Random vectors from the distributions on which selection is measured, and the relative error of
// sparsification, ||u - S(u)||^2 / ||u||^2: measured, and in closed form.
#pragma once

#include <cmath>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/core/parallel.h"
#include "engine/core/rng.h"
#include "sparsify/kernels/moments.h"

namespace tw {

/// One number from four random words. The distributions are symmetric around 0.
using Draw = float (*)(const Philox::Block&);

/// Uniform in (0, 1), without both ends.
inline double open_uniform(uint32_t bits) { return (bits + 0.5) * 0x1p-32; }

/// The distributions by name.
inline const std::map<std::string, Draw>& distributions() {
  static const std::map<std::string, Draw> all = {
      {"gaussian", [](const Philox::Block& x) { return normal(x[0], x[1])[0]; }},
      {"laplace",
       [](const Philox::Block& x) {
         const double size = -std::log(open_uniform(x[0]));
         return static_cast<float>(x[1] & 1 ? size : -size);
       }},
      // Student's t with three degrees of freedom: Z / sqrt(chi2 / 3)
      {"t3",
       [](const Philox::Block& x) {
         const double z = static_cast<double>(normal(x[0], x[1])[0]);
         const double y = static_cast<double>(normal(x[0], x[1])[1]);
         const double chi2 = -2 * std::log(open_uniform(x[2])) + y * y;
         return static_cast<float>(z / std::sqrt(chi2 / 3));
       }},
      {"lognormal",
       [](const Philox::Block& x) {
         const double size = std::exp(static_cast<double>(normal(x[0], x[1])[0]));
         return static_cast<float>(x[2] & 1 ? size : -size);
       }},
      {"uniform", [](const Philox::Block& x) { return 2 * uniform(x[0]) - 1; }},
  };
  return all;
}

/// Fills x; x[i] depends on the seed and i only, not on the number of threads.
inline void fill_random(const Context& ctx, Draw draw, uint64_t seed, std::span<float> x) {
  const Philox philox(seed, Purpose::test);
  parallel_for(ctx, x.size(), 4096, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) x[i] = draw(philox(i));
  });
}

/// Vectors whose entries do not have one distribution: fills x, Gaussian before.
inline const std::map<std::string, void (*)(std::span<float>)>& uneven_vectors() {
  static const std::map<std::string, void (*)(std::span<float>)> all = {
      // 50 layers; every fifth has the same scale, a tenth of the scale of the one before
      {"layers",
       [](std::span<float> x) {
         for (size_t i = 0; i < x.size(); ++i)
           x[i] *= std::pow(10.0f, -static_cast<float>(i * 50 / x.size() % 5));
       }},
      // one entry larger than all others together
      {"spike",
       [](std::span<float> x) {
         x[x.size() / 3] = 1e6f * std::sqrt(static_cast<float>(x.size()));
       }},
  };
  return all;
}

/// The names of all distributions and uneven vectors.
inline std::vector<std::string> vector_names() {
  std::vector<std::string> names;
  for (const auto& [name, draw] : distributions()) names.push_back(name);
  for (const auto& [name, change] : uneven_vectors()) names.push_back(name);
  return names;
}

/// Fills x by the name of a distribution or of an uneven vector.
inline void fill_by_name(const Context& ctx, const std::string& name, uint64_t seed,
                         std::span<float> x) {
  const auto uneven = uneven_vectors().find(name);
  const bool even = uneven == uneven_vectors().end();
  fill_random(ctx, distributions().at(even ? name : "gaussian"), seed, x);
  if (!even) uneven->second(x);
}

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
