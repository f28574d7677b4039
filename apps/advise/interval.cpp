#include "apps/advise/interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tw {

Interval median_interval(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  // P(fewer than r of n values lie below the median) = sum over i < r of C(n, i) / 2^n
  double log_term = -static_cast<double>(n) * std::log(2.0);  // 2^-n alone may underflow
  size_t r = 0;
  for (double tail = std::exp(log_term); r < n / 2 && 1 - 2 * tail >= 0.9; ++r) {
    log_term += std::log(static_cast<double>(n - r) / static_cast<double>(r + 1));
    tail += std::exp(log_term);
  }
  const size_t outer = r > 0 ? r - 1 : 0;
  const double mid = std::midpoint(values[(n - 1) / 2], values[n / 2]);
  return {.low = values[outer], .mid = mid, .high = values[n - 1 - outer]};
}

std::string interval_text(const Interval& interval, const char* format) {
  const auto text = [&](double value) { return fmt::format(fmt::runtime(format), value); };
  const std::string low = text(interval.low), high = text(interval.high);
  return low == high ? text(interval.mid)
                     : fmt::format("{} ({}-{})", text(interval.mid), low, high);
}

}  // namespace tw
