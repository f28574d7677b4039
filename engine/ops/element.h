// Elements of activations inside CPU loops: read as float, written with one rounding.
#pragma once

#include <cstddef>

#include "engine/dtype.h"
#include "engine/simd.h"

namespace tw::ops {

/// Elements one task of an elementwise loop handles: long enough to hide the cost of a task.
inline constexpr size_t kElementGrain = size_t{1} << 15;

TW_INLINE float load(float element) { return element; }
TW_INLINE float load(bf16 element) { return static_cast<float>(element); }
TW_INLINE void store(float& element, float value) { element = value; }
TW_INLINE void store(bf16& element, float value) { element = bf16(value); }

/// Calls body.operator()<T>() with the C++ type behind an activation's dtype (f32 or bf16).
template <class Body>
void with_activation_type(DType dtype, const Body& body) {
  if (dtype == DType::bf16)
    body.template operator()<bf16>();
  else
    body.template operator()<float>();
}

}  // namespace tw::ops
