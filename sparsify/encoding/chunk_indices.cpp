#include "sparsify/encoding/chunk_indices.h"

#include <bit>
#include <cstring>

namespace tw {

namespace {

constexpr uint32_t kLow = (uint32_t{1} << kChunkBits) - 1;

constexpr size_t low_bytes(size_t n) { return (n * kChunkBits + 7) / 8; }

}  // namespace

size_t chunk_encode(std::span<const uint32_t> indices, std::byte* out) {
  const size_t n = indices.size(), low = low_bytes(n);
  if (n == 0) return 0;
  const size_t chunks = indices.back() >> kChunkBits, bytes = low + (n + chunks + 7) / 8;
  std::memset(out + low, 0, bytes - low);
  for (size_t i = 0; i < n; ++i) {
    const uint32_t position = indices[i] & kLow;
    std::byte* const at = out + i / 2 * 3;
    if (i % 2 == 0) {
      at[0] = std::byte(position & 0xff);
      at[1] = std::byte(position >> 8);
    } else {
      at[1] |= std::byte(position << 4 & 0xff);
      at[2] = std::byte(position >> 4);
    }
    const size_t bit = i + (indices[i] >> kChunkBits);
    out[low + bit / 8] |= std::byte(1 << bit % 8);
  }
  return bytes;
}

bool chunk_decode(std::span<const std::byte> bytes, size_t d, std::span<uint32_t> indices) {
  const size_t n = indices.size(), low = low_bytes(n);
  if (n == 0) return bytes.empty();
  if (bytes.size() <= low || bytes.back() == std::byte{0}) return false;
  if (n % 2 == 1 && (bytes[low - 1] & std::byte{0xf0}) != std::byte{0}) return false;
  size_t i = 0;
  uint64_t next = 0;
  for (size_t byte = low; byte < bytes.size(); ++byte)
    for (auto bits = std::to_integer<uint32_t>(bytes[byte]); bits != 0; bits &= bits - 1) {
      if (i == n) return false;
      const std::byte* const at = bytes.data() + i / 2 * 3;
      const uint32_t position =
          i % 2 == 0
              ? std::to_integer<uint32_t>(at[0]) | std::to_integer<uint32_t>(at[1]) << 8
              : std::to_integer<uint32_t>(at[1]) >> 4 | std::to_integer<uint32_t>(at[2]) << 4;
      const uint64_t chunk = (byte - low) * 8 + static_cast<size_t>(std::countr_zero(bits)) - i;
      const uint64_t index = chunk << kChunkBits | (position & kLow);
      if (index < next || index >= d) return false;
      indices[i++] = static_cast<uint32_t>(index);
      next = index + 1;
    }
  return i == n;
}

}  // namespace tw
