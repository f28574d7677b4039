// Elements of activations in CPU loops: loaded as float, stored with one rounding.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/core/simd.h"

namespace tw::ops {

/// Elements per task of an elementwise loop: enough to hide the cost of a task.
inline constexpr size_t kElementGrain = size_t{1} << 15;

TW_INLINE float load(float element) { return element; }
TW_INLINE float load(bf16 element) { return static_cast<float>(element); }
TW_INLINE void store(float& element, float value) { element = value; }
/// Rounds to nearest even. `value` is a result of arithmetic: its NaNs are quiet and survive
/// truncation. The constructor of bf16 accepts any bits but vectorises worse.
TW_INLINE void store(bf16& element, float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint32_t carry = 0x7fffu + ((u >> 16) & 1u);
  element.bits = static_cast<uint16_t>((u + (value == value ? carry : 0u)) >> 16);
}

/// value where `passes`, else 0; by bits, since a choice would keep some loops scalar under AVX2.
TW_INLINE float where(bool passes, float value) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & (passes ? ~0u : 0u));
}

/// Calls body.operator()<T>() with the C++ type of an activation's dtype (f32 or bf16).
template <class Body>
void with_activation_type(DType dtype, const Body& body) {
  if (dtype == DType::bf16)
    body.template operator()<bf16>();
  else
    body.template operator()<float>();
}

}  // namespace tw::ops
