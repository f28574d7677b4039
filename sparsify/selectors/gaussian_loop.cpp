#include "sparsify/selectors/gaussian_loop.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/core/simd.h"
#include "sparsify/selectors/normal_quantile.h"

namespace tw {

namespace {

// The sample is made of whole cache lines: a line costs as much to read as one of its floats. It is
// at most an eighth of a long vector; a short vector is its own sample.
constexpr size_t kLine = 16, kMostLines = 4096, kFewLines = 64;

constexpr size_t sampled_lines(size_t d) {
  const size_t lines = (d + kLine - 1) / kLine;
  return std::min({lines, kMostLines, std::max(kFewLines, lines / 8)});
}

// Sums of the lines of a group. Their differences between groups show the error of the forecast.
struct GroupSums {
  double sum[kLine] = {}, square[kLine] = {};
};
constexpr size_t kGroups = 32;

TW_MULTIVERSION void add_line(const float* x, GroupSums* group) {
  for (size_t i = 0; i < kLine; ++i) {
    const double wide = double{x[i]};
    group->sum[i] += wide;
    group->square[i] += wide * wide;
  }
}

TW_MULTIVERSION size_t count_above(const float* x, size_t n, float threshold) {
  uint32_t count = 0;
  for (size_t i = 0; i < n; ++i) count += std::abs(x[i]) > threshold;
  return count;
}

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
    add_line(x, &groups[line % kGroups]);
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
    const size_t above = count_above(sample_.data(), sample_.size(), static_cast<float>(threshold));
    const Judgement found = judge(static_cast<double>(above), sampled_k);
    const double width = std::clamp(2.5 * error, 0.01, 0.2);
    if (found == Judgement::few) bounds_[used_++] = threshold * (1 - width);
    if (found == Judgement::many) bounds_[used_++] = threshold * (1 + width);
    return found;
  });
  least_ = last * (1 - std::clamp(4 * error, 0.05, 0.25));
}

}  // namespace tw
