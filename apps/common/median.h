// The median of a series of measurements.
#pragma once

#include <algorithm>
#include <vector>

namespace tw {

/// The middle value of a non-empty series; of an even number the upper of the two.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace tw
