#include "sparsify/encoding/rice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tw {

namespace {

constexpr size_t kBlock = 128;
constexpr int kParameterBits = 5, kEscape = 20, kGapBits = 32;
static_assert(std::endian::native == std::endian::little);

/// Appends up to 57 bits at a time; writes up to 8 bytes beyond what it has filled.
class BitWriter {
 public:
  explicit BitWriter(std::byte* out) : begin_(out), out_(out) {}

  void put(uint64_t bits, int count) {
    waiting_ |= bits << filled_;
    filled_ += count;
    std::memcpy(out_, &waiting_, sizeof waiting_);
    out_ += filled_ / 8;
    waiting_ >>= filled_ & ~7;
    filled_ &= 7;
  }
  size_t bytes() const { return static_cast<size_t>(out_ - begin_) + (filled_ > 0 ? 1 : 0); }

 private:
  std::byte *begin_, *out_;
  uint64_t waiting_ = 0;
  int filled_ = 0;
};

class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// The next bits, at least 57; zeros after the end.
  uint64_t peek() const {
    const size_t at = position_ / 8;
    uint64_t word = 0;
    if (at + sizeof word <= bytes_.size())
      std::memcpy(&word, bytes_.data() + at, sizeof word);
    else if (at < bytes_.size())
      std::memcpy(&word, bytes_.data() + at, bytes_.size() - at);
    return word >> (position_ % 8);
  }
  void skip(int count) { position_ += static_cast<size_t>(count); }
  /// True if all bytes are used and the padding is zero.
  bool at_end() const {
    return (position_ + 7) / 8 == bytes_.size() && (position_ % 8 == 0 || peek() == 0);
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

constexpr uint64_t low_bits(int count) { return (uint64_t{1} << count) - 1; }

// the best parameter is near the mean gap, but one long gap distorts the mean: try its neighbours
int best_parameter(const uint32_t* gaps, size_t n) {
  uint64_t sum = 0;
  for (size_t i = 0; i < n; ++i) sum += gaps[i];
  const int most = std::min(static_cast<int>(std::bit_width(sum / n)), (1 << kParameterBits) - 1);
  int best = most;
  uint64_t least = UINT64_MAX;
  for (int r = most; r >= std::max(0, most - 4); --r) {
    uint64_t bits = 0;
    for (size_t i = 0; i < n; ++i) {
      const uint32_t quotient = gaps[i] >> r;
      bits += quotient < kEscape ? quotient + 1 + r : kEscape + 1 + kGapBits;
    }
    if (bits >= least) continue;
    least = bits;
    best = r;
  }
  return best;
}

}  // namespace

size_t rice_encode(std::span<const uint32_t> indices, std::byte* out) {
  BitWriter writer(out);
  uint32_t gaps[kBlock], next = 0;
  for (size_t begin = 0; begin < indices.size(); begin += kBlock) {
    const size_t n = std::min(kBlock, indices.size() - begin);
    for (size_t i = 0; i < n; ++i) {
      gaps[i] = indices[begin + i] - next;
      next = indices[begin + i] + 1;
    }
    const int r = best_parameter(gaps, n);
    writer.put(static_cast<uint64_t>(r), kParameterBits);
    for (size_t i = 0; i < n; ++i) {
      const uint64_t gap = gaps[i], quotient = gap >> r;
      if (quotient < kEscape) {
        const int unary = static_cast<int>(quotient) + 1;
        writer.put(uint64_t{1} << quotient | (gap & low_bits(r)) << unary, unary + r);
      } else {
        writer.put(uint64_t{1} << kEscape | gap << (kEscape + 1), kEscape + 1 + kGapBits);
      }
    }
  }
  return writer.bytes();
}

bool rice_decode(std::span<const std::byte> bytes, size_t d, std::span<uint32_t> indices) {
  BitReader reader(bytes);
  uint64_t next = 0;
  for (size_t begin = 0; begin < indices.size(); begin += kBlock) {
    const size_t n = std::min(kBlock, indices.size() - begin);
    const int r = static_cast<int>(reader.peek() & low_bits(kParameterBits));
    reader.skip(kParameterBits);
    for (size_t i = 0; i < n; ++i) {
      const uint64_t word = reader.peek();
      const int quotient = std::countr_zero(word | uint64_t{1} << (kEscape + 1));
      if (quotient > kEscape) return false;
      const bool escaped = quotient == kEscape;
      const int low = escaped ? kGapBits : r;
      uint64_t gap = (word >> (quotient + 1)) & low_bits(low);
      if (!escaped) gap |= static_cast<uint64_t>(quotient) << r;
      reader.skip(quotient + 1 + low);
      if (next + gap >= d) return false;
      indices[begin + i] = static_cast<uint32_t>(next + gap);
      next += gap + 1;
    }
  }
  return reader.at_end();
}

double rice_bits(double density) {
  if (density >= 1) return 1 + double{kParameterBits} / kBlock;
  // a gap reaches g with probability (1 - density)^g
  double least = kGapBits;
  for (int r = 0; r < kGapBits; ++r) {
    const double passes = std::exp(std::ldexp(std::log1p(-density), r));
    least = std::min(least, 1 + r + passes / (1 - passes));
  }
  return least + double{kParameterBits} / kBlock;
}

}  // namespace tw
