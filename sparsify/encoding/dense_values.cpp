#include "sparsify/encoding/dense_values.h"

#include <atomic>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "comm/blocks.h"
#include "engine/core/parallel.h"
#include "sparsify/encoding/block_codes.h"

#define TW_KERNELS "sparsify/encoding/dense_values.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::TW_CPU {

template <int bits>
inline float dense_scale(const float* values, size_t n) {
  constexpr uint32_t kDropped = dropped_bits(bits);
  constexpr float kLevels = (1 << (bits - 1)) - 1;
  const float scale =
      bits == 1 ? mean_magnitude(values, n) : largest_magnitude(values, n) / kLevels;
  if (scale < FLT_MIN) return 0;
  const uint32_t word = std::bit_cast<uint32_t>(scale);
  return std::bit_cast<float>((bits == 1 ? word : word + kDropped) & ~kDropped);
}

/// `fractions`: of each value, if they are drawn.
template <int bits, bool drawn>
TW_INLINE void dense_write(float* values, size_t n, float scale, const float* fractions,
                           uint8_t* out) {
  constexpr int32_t kMost = (1 << (bits - 1)) - 1;
  const float inverse = scale > 0 ? 1 / scale : 0;
  uint8_t codes[kPackedTogether] = {};
  for (size_t i = 0; i < n; ++i) {
    if constexpr (bits == 1) {
      codes[i] = static_cast<uint8_t>(std::bit_cast<uint32_t>(values[i]) >> 31);
      values[i] -= std::copysign(scale, values[i]);
      continue;
    }
    const float multiple = values[i] * inverse;
    int32_t code = 0;
    if constexpr (drawn) {
      const float drawn_multiple = multiple + fractions[i];
      code = static_cast<int32_t>(drawn_multiple);  // truncates
      code -= static_cast<int32_t>(drawn_multiple < static_cast<float>(code));
      code = code < kMost ? code : kMost;
    } else {
      code = static_cast<int32_t>(multiple + std::copysign(0.5f, multiple));
    }
    codes[i] = static_cast<uint8_t>(static_cast<uint32_t>(code) & ((1u << bits) - 1));
    values[i] -= static_cast<float>(code) * scale;
  }
  pack_codes<bits>(codes, n, out);
}

template <int bits, bool drawn>
void dense_write_block(float* values, size_t length, size_t first, float scale,
                       const RoundingDraws* draws, uint8_t* out) {
  float fractions[kPackedTogether] = {};
  for (size_t i = 0; i < length; i += kPackedTogether, out += kPackedTogether * bits / 8) {
    if constexpr (drawn) draw_fractions(*draws, first + i, fractions);
    if (i + kPackedTogether <= length)
      dense_write<bits, drawn>(values + i, kPackedTogether, scale, fractions, out);
    else
      dense_write<bits, drawn>(values + i, length - i, scale, fractions, out);
  }
}

/// The block of a message that begins with its value `first`. `draws` null: rounds to nearest.
template <int bits>
void dense_write_block(float* values, size_t length, size_t first, const RoundingDraws* draws,
                       std::byte* scale_out, std::byte* codes_out) {
  const float scale = dense_scale<bits>(values, length);
  std::memcpy(scale_out, &scale, sizeof scale);
  if (!(scale <= FLT_MAX)) {  // of an infinity or a NaN: the reader stops at the scale
    std::memset(codes_out, 0, (length * bits + 7) / 8);
    return;
  }
  auto* const out = reinterpret_cast<uint8_t*>(codes_out);
  if (draws && bits > 1)
    dense_write_block<bits, true>(values, length, first, scale, draws, out);
  else
    dense_write_block<bits, false>(values, length, first, scale, nullptr, out);
}

template <int bits, bool add>
TW_INLINE void dense_read(const uint8_t* from, size_t n, float scale, float* values) {
  unpack_codes<bits>(from, n, [&](size_t i, uint32_t code) {
    const int32_t multiple = bits == 1 ? 1 - 2 * static_cast<int32_t>(code & 1)
                                       : static_cast<int32_t>(code << (32 - bits)) >> (32 - bits);
    const float value = static_cast<float>(multiple) * scale;
    values[i] = add ? values[i] + value : value;
  });
}

template <int bits, bool add>
void dense_read_block(const uint8_t* from, size_t length, float scale, float* values) {
  size_t i = 0;
  for (; i + kPackedTogether <= length; i += kPackedTogether, from += kPackedTogether * bits / 8)
    dense_read<bits, add>(from, kPackedTogether, scale, values + i);
  if (i < length) dense_read<bits, add>(from, length - i, scale, values + i);
}

template <int bits>
bool dense_read_block(const std::byte* scale_from, const std::byte* codes, size_t length, bool add,
                      float* values) {
  float scale = 0;
  std::memcpy(&scale, scale_from, sizeof scale);
  if (!(std::fabs(scale) <= FLT_MAX)) return false;
  const auto* const from = reinterpret_cast<const uint8_t*>(codes);
  if (add)
    dense_read_block<bits, true>(from, length, scale, values);
  else
    dense_read_block<bits, false>(from, length, scale, values);
  return true;
}

}  // namespace tw::TW_CPU
#else
namespace tw {

namespace {

constexpr size_t kGrain = size_t{1} << 16;  // values of a thread's piece, a multiple of every block

/// Calls body(first value, scale, codes) for each block of n values.
template <class Bytes, class Body>
void for_each_block(Context& ctx, size_t n, size_t block, int bits, Bytes* bytes,
                    const Body& body) {
  Bytes* const codes = bytes + blocks_in(n, block) * sizeof(float);
  parallel_for(ctx, n, std::max(block, kGrain / block * block), [&](size_t begin, size_t end) {
    for (size_t first = begin; first < end; first += block)
      body(first, bytes + first / block * sizeof(float),
           codes + first * static_cast<size_t>(bits) / 8);
  });
}

}  // namespace

DenseValues::DenseValues(ValueFormat format, size_t block)
    : bits_(bits_of(format)), block_(block) {}

size_t DenseValues::bytes(size_t n) const {
  return blocks_in(n, block_) * sizeof(float) + (n * static_cast<size_t>(bits_) + 7) / 8;
}

void DenseValues::write(Context& ctx, std::span<float> values, std::byte* out,
                        const std::optional<RoundingDraws>& draws) const {
  with_bits(bits_, [&]<int bits>() {
    for_each_block(ctx, values.size(), block_, bits_, out,
                   [&](size_t first, std::byte* scale, std::byte* codes) {
                     TW_KERNEL(dense_write_block<bits>, values.data() + first,
                               std::min(block_, values.size() - first), first,
                               draws ? &*draws : nullptr, scale, codes);
                   });
  });
}

bool DenseValues::read_or_add(Context& ctx, const std::byte* from, std::span<float> values,
                              bool add) const {
  std::atomic<bool> finite = true;
  with_bits(bits_, [&]<int bits>() {
    for_each_block(
        ctx, values.size(), block_, bits_, from,
        [&](size_t first, const std::byte* scale, const std::byte* codes) {
          const size_t length = std::min(block_, values.size() - first);
          if (!TW_KERNEL(dense_read_block<bits>, scale, codes, length, add, values.data() + first))
            finite = false;
        });
  });
  return finite;
}

}  // namespace tw
#endif
