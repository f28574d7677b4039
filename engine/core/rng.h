// Philox4x32-10, a counter-based generator (Salmon et al., SC 2011). A number depends on (seed,
// purpose, epoch, id, index) alone, so every thread, rank and resumed run draws the same one.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace tw {

/// What the numbers are drawn for. Each purpose has a separate stream of the same seed.
enum class Purpose : uint32_t {
  init = 1,
  shuffle,
  augment,
  dropout,
  generate,
  select,
  test,
  factors,
  hold_out,
  rounding,
  delay,
  slowness,
};

/// Ten rounds: four independent 32-bit numbers for every counter and key.
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> x, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * x[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * x[2];
    x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ k[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ k[1], static_cast<uint32_t>(a)};
    k = {k[0] + 0x9E3779B9u, k[1] + 0xBB67AE85u};
  }
  return x;
}

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  constexpr Philox(uint64_t seed, Purpose purpose, uint32_t epoch = 0)
      : key_{static_cast<uint32_t>(seed),
             static_cast<uint32_t>(seed >> 32) ^ (static_cast<uint32_t>(purpose) << 24)},
        epoch_(epoch) {}

  /// Four independent 32-bit numbers for (id, index).
  constexpr Block operator()(uint64_t id, uint32_t index = 0) const {
    return philox4x32({index, epoch_, static_cast<uint32_t>(id), static_cast<uint32_t>(id >> 32)},
                      key_);
  }

 private:
  std::array<uint32_t, 2> key_;
  uint32_t epoch_;
};

/// Random numbers for the values of one message, each of which becomes one of its two neighbours.
struct RoundingDraws {
  Philox philox;
  uint64_t message = 0;
};

/// Uniform in [0, 1), 24 bits.
constexpr float uniform(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

/// Uniform integer in [0, n), n > 0; bias below n / 2^32.
constexpr uint32_t below(uint32_t bits, uint32_t n) {
  return static_cast<uint32_t>((uint64_t{bits} * n) >> 32);
}

/// Two standard normals from two words (Box-Muller).
inline std::array<float, 2> normal(uint32_t a, uint32_t b) {
  const double radius = std::sqrt(-2.0 * std::log((a + 0.5) * 0x1p-32));
  const double angle = 2.0 * std::numbers::pi * (b * 0x1p-32);
  return {static_cast<float>(radius * std::cos(angle)),
          static_cast<float>(radius * std::sin(angle))};
}

}  // namespace tw
