#include "sparsify/kernels/low_rank.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/core/parallel.h"

#define TW_KERNELS "sparsify/kernels/low_rank.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::TW_CPU {

inline float dot(const float* a, const float* b, size_t n) {
  constexpr size_t kDotLanes = 16;
  std::array<float, kDotLanes> sums{};
  size_t i = 0;
  for (; i + kDotLanes <= n; i += kDotLanes)
    for (size_t lane = 0; lane < kDotLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  float sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  for (const float lane : sums) sum += lane;
  return sum;
}

inline void add_scaled(float factor, const float* x, float* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

}  // namespace tw::TW_CPU
#else
namespace tw {

namespace {

constexpr size_t kRows = 16;      // of M in one part of a parallel loop
constexpr size_t kColumns = 512;  // of M, in the first-level cache for all columns of Q

// One version for all CPUs below: their results must have the same bits on every rank.

using Column = std::span<float>;

double exact_dot(Column a, Column b) {
  std::array<double, 4> sums{};
  for (size_t i = 0; i < a.size(); ++i) sums[i % 4] += double{a[i]} * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void expand_row(const LowRankShape& shape, size_t row, float share, const float* p, const float* q,
                float* u, float* e) {
  const auto [rows, columns, rank] = shape;
  std::array<float, kColumns> sums;
  for (size_t begin = 0; begin < columns; begin += kColumns) {
    const size_t n = std::min(kColumns, columns - begin);
    std::fill_n(sums.begin(), n, 0.0f);
    for (size_t c = 0; c < rank; ++c) {
      const float factor = p[c * rows + row];
      const float* const x = q + c * columns + begin;
      for (size_t i = 0; i < n; ++i) sums[i] += factor * x[i];
    }
    for (size_t i = 0; i < n; ++i) {
      e[begin + i] = u[begin + i] - share * sums[i];
      u[begin + i] = sums[i];
    }
  }
}

}  // namespace

void multiply(Context& ctx, const LowRankShape& shape, std::span<const float> m,
              std::span<const float> q, std::span<float> p) {
  parallel_for(ctx, shape.rows, kRows, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row)
      for (size_t c = 0; c < shape.rank; ++c)
        p[c * shape.rows + row] =
            TW_KERNEL(dot, &m[row * shape.columns], &q[c * shape.columns], shape.columns);
  });
}

void multiply_transposed(Context& ctx, const LowRankShape& shape, std::span<const float> m,
                         std::span<const float> p, std::span<float> q) {
  parallel_for(ctx, shape.columns, kColumns, [&](size_t begin, size_t end) {
    for (size_t c = 0; c < shape.rank; ++c)
      std::fill(&q[c * shape.columns] + begin, &q[c * shape.columns] + end, 0.0f);
    for (size_t row = 0; row < shape.rows; ++row)
      for (size_t c = 0; c < shape.rank; ++c)
        TW_KERNEL(add_scaled, p[c * shape.rows + row], &m[row * shape.columns + begin],
                  &q[c * shape.columns + begin], end - begin);
  });
}

void expand(Context& ctx, const LowRankShape& shape, float share, std::span<const float> p,
            std::span<const float> q, std::span<float> u, std::span<float> e) {
  parallel_for(ctx, shape.rows, kRows, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row)
      expand_row(shape, row, share, p.data(), q.data(), &u[row * shape.columns],
                 &e[row * shape.columns]);
  });
}

bool orthonormalise(std::span<float> factor, size_t columns, size_t c) {
  const Column x = column_of(factor, columns, c);
  const double before = std::sqrt(exact_dot(x, x));
  for (int pass = 0; pass < 2; ++pass)
    for (size_t other = 0; other < c; ++other) {
      const Column y = column_of(factor, columns, other);
      const double part = exact_dot(x, y);
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(x[i] - part * y[i]);
    }
  const double norm = std::sqrt(exact_dot(x, x));
  const bool independent = norm > kDependent * before;
  for (float& value : x) value = independent ? static_cast<float>(value / norm) : 0.0f;
  return independent;
}

}  // namespace tw
#endif
