// Medians and their confidence intervals.
#include "apps/advise/interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace tw::test {
namespace {

/// The interval of 1, 2, ..., n, shuffled.
Interval of_first(int n) {
  std::vector<double> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 1);
  std::ranges::reverse(values);
  return median_interval(std::move(values));
}

TEST(Interval, HoldsTheMedianWithNinetyPercent) {
  // ranks from tables of the binomial distribution with p = 1/2
  const struct {
    int n, low;
  } cases[] = {{5, 1}, {7, 1}, {8, 2}, {9, 2}, {10, 2}, {11, 3}, {20, 6}, {100, 42}, {2000, 963}};
  for (const auto& [n, low] : cases) {
    const Interval interval = of_first(n);
    EXPECT_EQ(interval.low, low) << n;
    EXPECT_EQ(interval.high, n + 1 - low) << n;
    EXPECT_EQ(interval.mid, (n + 1) / 2.0) << n;
  }
}

TEST(Interval, OfFewValuesIsTheirRange) {
  for (int n = 1; n < 5; ++n) {
    EXPECT_EQ(of_first(n).low, 1) << n;
    EXPECT_EQ(of_first(n).high, n) << n;
  }
}

TEST(Interval, TextOfAPointHasNoRange) {
  EXPECT_EQ(interval_text({1, 2, 3}), "2 (1-3)");
  EXPECT_EQ(interval_text({2, 2, 2}), "2");
  EXPECT_EQ(interval_text({1.999, 2, 2.001}, "{:.1f}"), "2.0");
}

}  // namespace
}  // namespace tw::test
