// Element types, devices, and the storage formats bf16 and fp16.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tw {

enum class Device : uint8_t { cpu, cuda };
inline constexpr int kDeviceCount = 2;
std::string_view name(Device device);

enum class DType : uint8_t { f32, bf16, i32, u8 };
std::string_view name(DType dtype);

/// Bytes of one element.
constexpr size_t size_of(DType dtype) {
  constexpr size_t sizes[] = {4, 2, 4, 1};
  return sizes[static_cast<size_t>(dtype)];
}

/// How the values of a message are stored.
enum class ValueFormat : uint8_t { f32, fp16, bf16, int8, int4, int2, sign };
std::string_view name(ValueFormat format);
/// The format of this name.
ValueFormat value_format(std::string_view name);
/// Bits of one value, without scales.
constexpr int bits_of(ValueFormat format) {
  constexpr int bits[] = {32, 16, 16, 8, 4, 2, 1};
  return bits[static_cast<size_t>(format)];
}
/// Whether a value is a multiple of a scale that several values share.
constexpr bool is_scaled(ValueFormat format) { return bits_of(format) < 16; }
/// Bytes of one value that is not scaled.
constexpr size_t size_of(ValueFormat format) { return static_cast<size_t>(bits_of(format)) / 8; }

/// bfloat16 as storage: the upper half of a float, rounded to nearest even.
struct bf16 {
  uint16_t bits = 0;

  bf16() = default;
  constexpr explicit bf16(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    // a NaN must stay one: the rounding carry could turn it into infinity
    const uint32_t rounded = u + 0x7fffu + ((u >> 16) & 1u);
    bits = static_cast<uint16_t>((value != value ? (u | 0x400000u) : rounded) >> 16);
  }
  constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

/// fp16 (IEEE binary16) as storage: rounded to nearest even, infinite beyond 65504.
struct fp16 {
#ifdef __aarch64__  // where GCC 12 has no _Float16 in C++
  using Half = __fp16;
#else
  using Half = _Float16;
#endif
  uint16_t bits = 0;

  fp16() = default;
  explicit fp16(float value) : bits(std::bit_cast<uint16_t>(static_cast<Half>(value))) {}
  explicit operator float() const { return static_cast<float>(std::bit_cast<Half>(bits)); }
};

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<bf16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::u8;
};

}  // namespace tw
