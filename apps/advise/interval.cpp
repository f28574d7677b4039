#include "apps/advise/interval.h"

#include <fmt/format.h>

#include <algorithm>

namespace tw {

Interval median_interval(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  // P(fewer than r of n values lie below the median) = sum over i < r of C(n, i) / 2^n
  double term = 1;
  for (size_t i = 0; i < n; ++i) term /= 2;
  size_t r = 0;
  for (double tail = term; r < n / 2 && 1 - 2 * tail >= 0.9; ++r) {
    term *= static_cast<double>(n - r) / static_cast<double>(r + 1);
    tail += term;
  }
  const size_t outer = r > 0 ? r - 1 : 0;
  return {.low = values[outer], .mid = values[n / 2], .high = values[n - 1 - outer]};
}

std::string interval_text(const Interval& interval, const char* format) {
  const auto text = [&](double value) { return fmt::format(fmt::runtime(format), value); };
  const std::string low = text(interval.low), high = text(interval.high);
  return low == high ? text(interval.mid)
                     : fmt::format("{} ({}-{})", text(interval.mid), low, high);
}

}  // namespace tw
