// Loops of packing on the CPU, included once for each instruction set by block_codes.h.

namespace tw::TW_CPU {

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
