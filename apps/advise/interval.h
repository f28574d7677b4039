// Interval: a median with the range that holds it, from a few repeated measurements.
#pragma once

#include <string>
#include <vector>

namespace tw {

/// low <= mid <= high.
struct Interval {
  double low = 0, mid = 0, high = 0;
};

/// The median of a non-empty series (of an even number, the mean of the two in the middle) and its
/// distribution-free confidence interval: the r-th least and the r-th largest value, with the
/// largest r for which they enclose the median of the population with a probability of at least
/// 0.9 (a binomial tail). Fewer than five values do not reach it: least and largest.
Interval median_interval(std::vector<double> values);

/// `0.2738 (0.2720-0.2750)`; without the range if it is a point.
std::string interval_text(const Interval& interval, const char* format = "{:.4g}");

}  // namespace tw
