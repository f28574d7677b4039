#include "sparsify/kernels/low_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/core/rng.h"

namespace tw {
namespace {

std::vector<float> random_vector(size_t n, uint64_t id) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) {
    const auto bits = Philox(3, Purpose::test)(id, static_cast<uint32_t>(i));
    x[i] = normal(bits[0], bits[1])[0];
  }
  return x;
}

/// The largest difference of the columns' inner products from those of orthonormal columns, of
/// which `zeros` are zero.
double defect(const std::vector<float>& factor, size_t columns, size_t zeros = 0) {
  const size_t n = factor.size() / columns;
  double largest = 0;
  size_t found = 0;
  for (size_t a = 0; a < columns; ++a)
    for (size_t b = 0; b <= a; ++b) {
      double sum = 0;
      for (size_t i = 0; i < n; ++i) sum += double{factor[a * n + i]} * factor[b * n + i];
      found += a == b && sum == 0;
      if (a != b || sum != 0) largest = std::max(largest, std::abs(sum - (a == b ? 1 : 0)));
    }
  return found == zeros ? largest : INFINITY;
}

void orthonormalise_all(std::vector<float>& factor, size_t columns) {
  for (size_t c = 0; c < columns; ++c) orthonormalise(factor, columns, c);
}

TEST(LowRank, ProductsAreThoseOfTheDefinition) {
  for (const LowRankShape& shape :
       {LowRankShape{1, 1, 1}, LowRankShape{37, 1100, 3}, LowRankShape{130, 5, 2}}) {
    const auto [n, m, r] = shape;
    const auto a = random_vector(n * m, 1), q = random_vector(m * r, 2),
               p = random_vector(n * r, 3);
    Context one, three(Device::cpu, 3);
    std::vector<float> p1(n * r), p3(n * r), q1(m * r), q3(m * r);
    multiply(one, shape, a, q, p1);
    multiply(three, shape, a, q, p3);
    multiply_transposed(one, shape, a, p, q1);
    multiply_transposed(three, shape, a, p, q3);
    EXPECT_EQ(p1, p3);
    EXPECT_EQ(q1, q3);
    for (size_t c = 0; c < r; ++c) {
      for (size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (size_t j = 0; j < m; ++j) sum += double{a[i * m + j]} * q[c * m + j];
        EXPECT_NEAR(p1[c * n + i], sum, 1e-5 * static_cast<double>(m));
      }
      for (size_t j = 0; j < m; ++j) {
        double sum = 0;
        for (size_t i = 0; i < n; ++i) sum += double{a[i * m + j]} * p[c * n + i];
        EXPECT_NEAR(q1[c * m + j], sum, 1e-5 * static_cast<double>(n));
      }
    }
    std::vector<float> u = a, e(n * m), u3 = a, e3(n * m);
    expand(one, shape, 0.25f, p, q, u, e);
    expand(three, shape, 0.25f, p, q, u3, e3);
    EXPECT_EQ(u, u3);
    EXPECT_EQ(e, e3);
    for (size_t i = 0; i < n * m; ++i) {
      double sum = 0;
      for (size_t c = 0; c < r; ++c) sum += double{p[c * n + i / m]} * q[c * m + i % m];
      EXPECT_NEAR(u[i], sum, 1e-5);
      EXPECT_EQ(e[i], a[i] - 0.25f * u[i]);
    }
  }
}

TEST(LowRank, ColumnsBecomeOrthonormalAndKeepTheirSpan) {
  for (const float scale : {1.0f, 1e-30f, 1e30f}) {
    auto x = random_vector(4 * 50, 5);
    for (float& value : x) value *= scale;
    const auto before = x;
    orthonormalise_all(x, 4);
    EXPECT_LT(defect(x, 4), 1e-6) << scale;
    // the second column is in the span of the first two
    double along[2] = {0, 0}, square = 0, left = 0;
    for (size_t c = 0; c < 2; ++c)
      for (size_t i = 0; i < 50; ++i) along[c] += double{before[50 + i]} * x[c * 50 + i];
    for (size_t i = 0; i < 50; ++i) {
      square += double{before[50 + i]} * before[50 + i];
      left += std::pow(before[50 + i] - along[0] * x[i] - along[1] * x[50 + i], 2);
    }
    EXPECT_LT(left, 1e-10 * square) << scale;
  }
}

TEST(LowRank, NearlyDependentColumnsBecomeOrthogonal) {
  auto x = random_vector(2 * 50, 6);
  for (size_t i = 0; i < 50; ++i) x[50 + i] = x[i] + 1e-4f * x[50 + i];
  orthonormalise_all(x, 2);
  EXPECT_LT(defect(x, 2), 1e-6);
}

TEST(LowRank, DependentColumnsBecomeZero) {
  auto x = random_vector(3 * 50, 7);
  for (size_t i = 0; i < 50; ++i) x[50 + i] = -2 * x[i];
  EXPECT_TRUE(orthonormalise(x, 3, 0));
  EXPECT_FALSE(orthonormalise(x, 3, 1));
  EXPECT_TRUE(orthonormalise(x, 3, 2));
  EXPECT_LT(defect(x, 3, 1), 1e-6);
  for (const float value : column_of(x, 3, 1)) EXPECT_EQ(value, 0);

  std::vector<float> zeros(2 * 9);
  orthonormalise_all(zeros, 2);
  EXPECT_LT(defect(zeros, 2, 2), 1e-6);
}

}  // namespace
}  // namespace tw
