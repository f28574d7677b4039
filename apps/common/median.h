// The median of a series of measurements.
#pragma once

#include <algorithm>
#include <vector>

namespace tw {

/// The middle value of a non-empty series; the upper of the two for an even number of values.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace tw
