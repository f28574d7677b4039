#include "sparsify/encoding/scaled_values.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

#include "sparsify/encoding/block_codes.h"

#define TW_KERNELS "sparsify/encoding/scaled_values.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::TW_CPU {

inline float block_scale(int bits, const float* values, size_t n) {
  const float most = largest_magnitude(values, n) / static_cast<float>(1 << (bits - 1));
  const float mean = mean_magnitude(values, n);
  const float scale = most < mean ? most : mean;
  if (scale < FLT_MIN) return std::numeric_limits<float>::denorm_min();
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scale) & ~dropped_bits(bits));
}

/// The magnitude of a value as a multiple of the scale: the nearest with a fraction of 0.5, one of
/// both neighbours with one drawn from [0, 1). Chosen by masks: branches would keep loops scalar.
inline int32_t close_multiple(float value, float scale, float levels, float fraction = 0.5f) {
  const auto multiple = std::bit_cast<int32_t>(std::fabs(value) / scale);
  const auto most = std::bit_cast<int32_t>(levels);  // bits order positive floats as integers
  const int32_t beyond = -static_cast<int32_t>(multiple > most);
  const float within = std::bit_cast<float>((multiple & ~beyond) | (most & beyond));
  const auto close = static_cast<int32_t>(within + fraction);
  // 128 + 0.99999994 is 129 in f32
  const int32_t above = static_cast<int32_t>(static_cast<float>(close) > levels);
  return close + static_cast<int32_t>(close == 0) - above;
}

void scaled_round(int bits, size_t block, const RoundingDraws* draws, float* values, size_t n) {
  const float levels = static_cast<float>(1 << (bits - 1));
  float fractions[kPackedTogether];
  std::ranges::fill(fractions, 0.5f);
  for (size_t begin = 0; begin < n; begin += block) {
    const size_t end = std::min(n, begin + block);
    const float scale = block_scale(bits, values + begin, end - begin);
    for (size_t i = begin; i < end; i += kPackedTogether) {
      if (draws) draw_fractions(*draws, i, fractions);
      float* const some = values + i;
      for (size_t j = 0; j < std::min(kPackedTogether, end - i); ++j) {
        const int32_t multiple = close_multiple(some[j], scale, levels, fractions[j]);
        some[j] = std::copysign(static_cast<float>(multiple) * scale, some[j]);
      }
    }
  }
}

template <int bits>
TW_INLINE void scaled_write(const float* values, size_t n, float scale, uint8_t* out) {
  constexpr float kLevels = 1 << (bits - 1);
  uint8_t codes[kPackedTogether] = {};
  for (size_t i = 0; i < n; ++i) {
    const auto magnitude = static_cast<uint32_t>(close_multiple(values[i], scale, kLevels) - 1);
    const uint32_t negative = std::bit_cast<uint32_t>(values[i]) >> 31;
    codes[i] = static_cast<uint8_t>(magnitude | negative << (bits - 1));
  }
  pack_codes<bits>(codes, n, out);
}

template <int bits>
TW_INLINE void scaled_read(const uint8_t* from, size_t n, float scale, float* values) {
  constexpr uint32_t kMagnitude = (1u << (bits - 1)) - 1;
  unpack_codes<bits>(from, n, [&](size_t i, uint32_t code) {
    const float magnitude = static_cast<float>(static_cast<int32_t>((code & kMagnitude) + 1));
    const uint32_t sign = code >> (bits - 1) << 31;
    values[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude * scale) ^ sign);
  });
}

/// Writes the scales and the packed values.
template <int bits>
void scaled_write_all(size_t block, const float* values, size_t n, std::byte* out) {
  auto* packed = reinterpret_cast<uint8_t*>(out + (n + block - 1) / block * sizeof(float));
  for (size_t begin = 0; begin < n; begin += block) {
    const size_t end = std::min(n, begin + block);
    const float scale = block_scale(bits, values + begin, end - begin);
    std::memcpy(out, &scale, sizeof scale);
    out += sizeof scale;
    size_t i = begin;
    for (; i + kPackedTogether <= end; i += kPackedTogether, packed += kPackedTogether * bits / 8)
      scaled_write<bits>(values + i, kPackedTogether, scale, packed);
    if (i < end) scaled_write<bits>(values + i, end - i, scale, packed);
  }
}

template <int bits>
void scaled_read_all(size_t block, const std::byte* from, float* values, size_t n) {
  const auto* packed =
      reinterpret_cast<const uint8_t*>(from + (n + block - 1) / block * sizeof(float));
  for (size_t begin = 0; begin < n; begin += block) {
    const size_t end = std::min(n, begin + block);
    float scale = 0;
    std::memcpy(&scale, from, sizeof scale);
    from += sizeof scale;
    size_t i = begin;
    for (; i + kPackedTogether <= end; i += kPackedTogether, packed += kPackedTogether * bits / 8)
      scaled_read<bits>(packed, kPackedTogether, scale, values + i);
    if (i < end) scaled_read<bits>(packed, end - i, scale, values + i);
  }
}

}  // namespace tw::TW_CPU
#else
namespace tw {

ScaledValues::ScaledValues(ValueFormat format, size_t block)
    : bits_(bits_of(format)), block_(format == ValueFormat::sign ? size_t{1} << 40 : block) {}

size_t ScaledValues::bytes(size_t n) const {
  return (n + block_ - 1) / block_ * sizeof(float) + (n * static_cast<size_t>(bits_) + 7) / 8;
}

void ScaledValues::round(std::span<float> values, const std::optional<RoundingDraws>& draws) const {
  const RoundingDraws* const drawn = draws && bits_ > 1 ? &*draws : nullptr;
  TW_KERNEL(scaled_round, bits_, block_, drawn, values.data(), values.size());
}

void ScaledValues::write(std::span<const float> values, std::byte* out) const {
  with_bits(bits_, [&]<int bits>() {
    TW_KERNEL(scaled_write_all<bits>, block_, values.data(), values.size(), out);
  });
}

void ScaledValues::read(const std::byte* from, std::span<float> values) const {
  with_bits(bits_, [&]<int bits>() {
    TW_KERNEL(scaled_read_all<bits>, block_, from, values.data(), values.size());
  });
}

}  // namespace tw
#endif
