// Loops over blocks on the CPU, included once for each instruction set by block_codes.h.

namespace tw::TW_CPU {

/// NaN if a value is NaN.
inline float largest_magnitude(const float* values, size_t n) {
  constexpr size_t kLanes = 16;
  int32_t lanes[kLanes] = {};  // of bits, which order magnitudes as integers
  const auto take = [&](size_t j, float value) {
    const auto bits = static_cast<int32_t>(std::bit_cast<uint32_t>(value) & 0x7fffffffu);
    lanes[j] = lanes[j] < bits ? bits : lanes[j];
  };
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (size_t j = 0; j < kLanes; ++j) take(j, values[i + j]);
  for (size_t j = 0; i < n; ++i, ++j) take(j, values[i]);
  int32_t largest = 0;
  for (const int32_t lane : lanes) largest = largest < lane ? lane : largest;
  return std::bit_cast<float>(largest);
}

inline float mean_magnitude(const float* values, size_t n) {
  constexpr size_t kLanes = 16;  // the same sums with every instruction set
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (size_t j = 0; j < kLanes; ++j) lanes[j] += std::fabs(values[i + j]);
  for (size_t j = 0; i < n; ++i, ++j) lanes[j] += std::fabs(values[i]);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return static_cast<float>(sum / static_cast<double>(n));
}

/// Numbers in [0, 1) for values i to i + kPackedTogether - 1 of a message.
TW_INLINE void draw_fractions(const RoundingDraws& draws, size_t i, float* fractions) {
  for (size_t j = 0; j < kPackedTogether / 4; ++j) {
    const auto words = draws.philox(draws.message, static_cast<uint32_t>(i / 4 + j));
    for (size_t k = 0; k < 4; ++k) fractions[4 * j + k] = uniform(words[k]);
  }
}

/// Packs n codes below 2^bits; codes[n] to codes[kPackedTogether - 1] are 0. Inlined, so that a
/// call with kPackedTogether codes has loops of a known length.
template <int bits>
TW_INLINE void pack_codes(const uint8_t (&codes)[kPackedTogether], size_t n, uint8_t* out) {
  constexpr size_t kPerByte = 8 / bits;
  const size_t bytes = (n + kPerByte - 1) / kPerByte;
  std::memset(out, 0, bytes);
  for (size_t k = 0; k < kPerByte; ++k)
    for (size_t j = 0, at = k * bytes; j < bytes && at + j < kPackedTogether; ++j)
      out[j] = static_cast<uint8_t>(out[j] | codes[at + j] << (k * bits));
}

/// Calls body(i, code) for n packed codes; bits of `code` above its own are those of others.
template <int bits, class Body>
TW_INLINE void unpack_codes(const uint8_t* from, size_t n, const Body& body) {
  constexpr size_t kPerByte = 8 / bits;
  const size_t bytes = (n + kPerByte - 1) / kPerByte;
  for (size_t k = 0; k < kPerByte; ++k)
    for (size_t j = 0, at = k * bytes; j < bytes && at + j < n; ++j)
      body(at + j, static_cast<uint32_t>(from[j]) >> (k * bits));
}

}  // namespace tw::TW_CPU
