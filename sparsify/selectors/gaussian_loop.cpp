#include "sparsify/selectors/gaussian_loop.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sparsify/selectors/normal_quantile.h"

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

}  // namespace

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
  used_ = 0;
  const double last = last_threshold(first, [&](double threshold) {
    const size_t above =
        TW_KERNEL(count_above, sample_.data(), sample_.size(), static_cast<float>(threshold));
    const Judgement found = judge(static_cast<double>(above), sampled_k);
    const double width = std::clamp(2.5 * error, 0.01, 0.2);
    if (found == Judgement::few) bounds_[used_++] = threshold * (1 - width);
    if (found == Judgement::many) bounds_[used_++] = threshold * (1 + width);
    return found;
  });
  least_ = last * (1 - std::clamp(4 * error, 0.05, 0.25));
}

}  // namespace tw
#endif
