// Argument checks of the public op functions. Each throws UserError `[op] ...`.
#pragma once

#include <string_view>

#include "engine/core/error.h"
#include "engine/core/tensor.h"

namespace tw::ops {

/// Activations are f32 or bf16.
inline void check_activation(std::string_view op, std::string_view what, const Tensor& x) {
  check(x.dtype == DType::f32 || x.dtype == DType::bf16, "[{}] {} is {}; expected f32 or bf16", op,
        what, name(x.dtype));
}

inline void check_shape(std::string_view op, std::string_view what, const Tensor& x,
                        const Shape& expected) {
  check(x.shape == expected, "[{}] {} is {}; expected {}", op, what, x.shape, expected);
}

inline void check_dtype(std::string_view op, std::string_view what, const Tensor& x,
                        DType expected) {
  check(x.dtype == expected, "[{}] {} is {}; expected {}", op, what, name(x.dtype), name(expected));
}

/// `x` has the shape and the dtype of `model`.
inline void check_like(std::string_view op, std::string_view what, const Tensor& x,
                       const Tensor& model) {
  check_shape(op, what, x, model.shape);
  check_dtype(op, what, x, model.dtype);
}

}  // namespace tw::ops
