// fp16 as storage: IEEE binary16, rounded to nearest even; beyond 65504 it overflows to infinity.
#pragma once

#include <bit>
#include <cstdint>

namespace tw {

struct fp16 {
  uint16_t bits = 0;

  fp16() = default;
  explicit fp16(float value) : bits(std::bit_cast<uint16_t>(static_cast<_Float16>(value))) {}
  explicit operator float() const { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
};

}  // namespace tw
