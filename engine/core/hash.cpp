#include "engine/core/hash.h"

#include <cstring>

namespace tw {

uint64_t checksum(std::span<const std::byte> bytes) {
  constexpr uint64_t kPrime = 0x9E3779B97F4A7C15ull;
  // four lanes, so that the multiplications overlap
  uint64_t lanes[4] = {bytes.size(), 1, 2, 3};
  const auto mix = [](uint64_t lane, uint64_t word) {
    lane = (lane ^ word) * kPrime;
    return lane ^ (lane >> 29);
  };
  size_t i = 0;
  for (; i + 32 <= bytes.size(); i += 32) {
    uint64_t words[4];
    std::memcpy(words, bytes.data() + i, sizeof words);
    for (size_t l = 0; l < 4; ++l) lanes[l] = mix(lanes[l], words[l]);
  }
  for (; i < bytes.size(); ++i) lanes[0] = mix(lanes[0], static_cast<uint64_t>(bytes[i]));
  return mix(mix(mix(lanes[0], lanes[1]), lanes[2]), lanes[3]);
}

}  // namespace tw
