#include "sparsify/selectors/gaussian_loop.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#define TW_KERNELS "sparsify/selectors/gaussian_loop.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::TW_CPU {

inline constexpr size_t kLine = 16;  ///< floats of a cache line

/// Adds a line to the sums of its elements and of their squares, kLine each.
inline void add_line(const float* x, double* sums, double* squares) {
  const auto wide = widened<kLine>(x);
  using Wide = Lanes<double, kLine>;
  (Wide::load(sums) += wide).store(sums);
  Wide square = Wide::load(squares);
  square.add_product(wide, wide);
  square.store(squares);
}

inline size_t count_above(const float* x, size_t n, float threshold) {
  uint32_t count = 0;
  for (size_t i = 0; i < n; ++i) count += std::abs(x[i]) > threshold;
  return count;
}

}  // namespace tw::TW_CPU
#else
namespace tw {

namespace {

// The sample is made of whole cache lines: a line costs as much to read as one of its floats. It is
// at most an eighth of a long vector; a short vector is its own sample.
using baseline::kLine;
constexpr size_t kMostLines = 4096, kFewLines = 64;

constexpr size_t sampled_lines(size_t d) {
  const size_t lines = (d + kLine - 1) / kLine;
  return std::min({lines, kMostLines, std::max(kFewLines, lines / 8)});
}

// Sums of the lines of a group. Their differences between groups show the error of the forecast.
struct GroupSums {
  double sum[kLine] = {}, square[kLine] = {};
};
constexpr size_t kGroups = 32;

// A total over groups and its standard error.
struct Estimate {
  double total = 0, squares = 0;
  void add(double group) { total += group, squares += group * group; }
  double error() const {
    return std::sqrt(std::max(0.0, squares - total * total / double{kGroups}));
  }
};

using Coefficients = std::array<double, 8>;

double polynomial(const Coefficients& c, double x) {
  double sum = 0;
  for (size_t i = c.size(); i-- > 0;) sum = sum * x + c[i];
  return sum;
}

// numerators and denominators for |p - 0.5| <= 0.425, for moderate and for far tails
constexpr Coefficients kA = {3.3871328727963666080e0, 1.3314166789178437745e2,
                             1.9715909503065514427e3, 1.3731693765509461125e4,
                             4.5921953931549871457e4, 6.7265770927008700853e4,
                             3.3430575583588128105e4, 2.5090809287301226727e3};
constexpr Coefficients kB = {1.0,
                             4.2313330701600911252e1,
                             6.8718700749205790830e2,
                             5.3941960214247511077e3,
                             2.1213794301586595867e4,
                             3.9307895800092710610e4,
                             2.8729085735721942674e4,
                             5.2264952788528545610e3};
constexpr Coefficients kC = {1.42343711074968357734e0,  4.63033784615654529590e0,
                             5.76949722146069140550e0,  3.64784832476320460504e0,
                             1.27045825245236838258e0,  2.41780725177450611770e-1,
                             2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr Coefficients kD = {1.0,
                             2.05319162663775882187e0,
                             1.67638483018380384940e0,
                             6.89767334985100004550e-1,
                             1.48103976427480074590e-1,
                             1.51986665636164571966e-2,
                             5.47593808499534494600e-4,
                             1.05075007164441684324e-9};
constexpr Coefficients kE = {6.65790464350110377720e0,  5.46378491116411436990e0,
                             1.78482653991729133580e0,  2.96560571828504891230e-1,
                             2.65321895265761230930e-2, 1.24266094738807843860e-3,
                             2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr Coefficients kF = {1.0,
                             5.99832206555887937690e-1,
                             1.36929880922735805310e-1,
                             1.48753612908506148525e-2,
                             7.86869131145613259100e-4,
                             1.84631831751005468180e-5,
                             1.42151175831644588870e-7,
                             2.04426310338993978564e-15};

}  // namespace

double normal_quantile(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kA, r) / polynomial(kB, r);
  }
  const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
  const double x = r <= 5 ? polynomial(kC, r - 1.6) / polynomial(kD, r - 1.6)
                          : polynomial(kE, r - 5) / polynomial(kF, r - 5);
  return q < 0 ? -x : x;
}

double first_threshold(double sum, double square, size_t n, double density) {
  const double count = static_cast<double>(n), mean = sum / count;
  const double variance = (square - sum * mean) / std::max(1.0, count - 1);
  return mean + std::abs(normal_quantile(density / 2)) * std::sqrt(std::max(0.0, variance));
}

void GaussianForecast::make(std::span<const float> g, std::span<const float> e, size_t k,
                            double density) {
  const size_t d = e.size(), lines = sampled_lines(d), n = std::min(d, lines * kLine);
  const auto start = [&](size_t line) { return n == d ? line * kLine : line * (d / lines); };
  sample_.assign(lines * kLine, 0.0f);
  std::array<GroupSums, kGroups> groups{};
  for (size_t line = 0; line < lines; ++line) {
    constexpr size_t kAhead = 16;  // each line is a cache miss: prefetch
    if (line + kAhead < lines) {
      const size_t next = start(line + kAhead);
      __builtin_prefetch(&e[next]);
      if (!g.empty()) __builtin_prefetch(&g[next]);
    }
    const size_t first = start(line), length = std::min(kLine, d - first);
    float* const x = &sample_[line * kLine];
    for (size_t i = 0; i < length; ++i)
      x[i] = g.empty() ? e[first + i] : e[first + i] + g[first + i];
    TW_KERNEL(add_line, x, groups[line % kGroups].sum, groups[line % kGroups].square);
  }

  Estimate sum, square;
  for (const GroupSums& group : groups) {
    sum.add(std::accumulate(std::begin(group.sum), std::end(group.sum), 0.0));
    square.add(std::accumulate(std::begin(group.square), std::end(group.square), 0.0));
  }
  const double first = first_threshold(sum.total, square.total, n, density);
  double error = 1e-6;  // relative, of the first threshold; of rounding if the sample is the whole
  if (n < d && square.total > 0)
    error += 0.5 * square.error() / square.total +
             sum.error() / static_cast<double>(n) / std::max(first, 1e-300);

  const double sampled_k = static_cast<double>(k) * static_cast<double>(n) / static_cast<double>(d);
  const auto above = [&](double threshold) {
    return static_cast<double>(
        TW_KERNEL(count_above, sample_.data(), sample_.size(), static_cast<float>(threshold)));
  };
  bool many = false;
  const double last = last_threshold(first, [&](double threshold) {
    const Judgement found = judge(above(threshold), sampled_k);
    many = many || found == Judgement::many;
    return found;
  });
  least_ = last * (1 - std::clamp(4 * error, 0.05, 0.25));
  // twice k is many whatever the error of the sample
  while (many && least_ > first && above(least_) < 2 * sampled_k) least_ *= 0.95;
}

}  // namespace tw
#endif
