// Products of a matrix M (n x m, row-major) with its factors, and their orthogonalisation. All in
// host memory. The columns of a factor are contiguous: P has r columns of n, Q has r columns of m.
#pragma once

#include <cstdint>
#include <span>

#include "engine/core/context.h"

namespace tw {

/// A matrix and the number of columns of its factors.
struct LowRankShape {
  size_t rows = 0, columns = 0, rank = 0;
  size_t elements() const { return rows * columns; }
  size_t p_elements() const { return rows * rank; }
  size_t q_elements() const { return columns * rank; }
};

/// P = M Q. The bits do not depend on the number of threads.
void multiply(Context& ctx, const LowRankShape& shape, std::span<const float> m,
              std::span<const float> q, std::span<float> p);
/// Q = M^T P. The bits do not depend on the number of threads.
void multiply_transposed(Context& ctx, const LowRankShape& shape, std::span<const float> m,
                         std::span<const float> p, std::span<float> q);
/// In one pass: e = u - share P Q^T, and u = P Q^T. The bits of u are the same on any CPU.
void expand(Context& ctx, const LowRankShape& shape, float share, std::span<const float> p,
            std::span<const float> q, std::span<float> u, std::span<float> e);

/// A column that keeps at most this share of its norm depends on the columns before it.
inline constexpr double kDependent = 1e-6;
/// One column of the modified Gram-Schmidt process: makes column c orthogonal to those before it,
/// which are orthonormal or zero, with norm 1. It is projected twice, so that nearly dependent
/// columns become orthogonal, too. A zero column, or one that depends on the columns before it,
/// becomes zero; returns false then. Same bits on any CPU.
bool orthonormalise(std::span<float> factor, size_t columns, size_t c);
/// Column c of a factor.
inline std::span<float> column_of(std::span<float> factor, size_t columns, size_t c) {
  const size_t n = factor.size() / columns;
  return factor.subspan(c * n, n);
}

}  // namespace tw
