// Magnitudes as integers: the bits of |x| of a float order like |x| itself, NaN above infinity.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tw {

inline constexpr uint32_t kInfinityBits = 0x7f800000u;

constexpr uint32_t magnitude_bits(float x) { return std::bit_cast<uint32_t>(x) & 0x7fffffffu; }

/// Bits of the least magnitude above `threshold`; 0 for a negative threshold, infinity for one that
/// no finite float exceeds.
constexpr uint32_t bits_above(double threshold) {
  if (threshold < 0) return 0;
  if (threshold >= double{std::numeric_limits<float>::max()}) return kInfinityBits;
  const float nearest = static_cast<float>(threshold);
  return magnitude_bits(nearest) + (double{nearest} <= threshold ? 1 : 0);
}

/// Histogram of magnitudes with logarithmic bins: 8 bits of exponent and 7 of mantissa, so a bin is
/// less than 0.8 % wide.
class LogHistogram {
 public:
  static constexpr uint32_t kShift = 16;

  void clear() { counts_.assign(size_t{1} << (31 - kShift), 0); }
  void add(uint32_t magnitude) { ++counts_[magnitude >> kShift]; }
  void add(const LogHistogram& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  }

  /// The bin in which the count from the top reaches k.
  struct Cut {
    uint32_t edge = 0;  ///< magnitude bits at which the bin begins; 0 if fewer than k were added
    size_t above = 0;   ///< entries in higher bins, < k
  };
  Cut cut(size_t k) const {
    size_t above = 0;
    for (size_t bin = counts_.size(); bin-- > 0; above += counts_[bin])
      if (above + counts_[bin] >= k) return {static_cast<uint32_t>(bin) << kShift, above};
    return {0, above};
  }

 private:
  std::vector<uint32_t> counts_;
};

}  // namespace tw
