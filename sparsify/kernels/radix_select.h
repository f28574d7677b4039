// Radix search: the k-th largest magnitude by counting digits, the highest first. What the passes
// have in common on every device.
#pragma once

#include <cstdint>

#include "sparsify/kernels/magnitude.h"

namespace tw {

/// A magnitude has 31 bits: three digits of 11, 10 and 10.
struct RadixDigits {
  static constexpr int kPasses = 3;
  static constexpr int kMostBins = 1 << 11;

  static constexpr int shift(int pass) { return pass == 0 ? 20 : pass == 1 ? 10 : 0; }
  static constexpr int bins(int pass) { return pass == 0 ? 1 << 11 : 1 << 10; }
  static constexpr uint32_t digit(uint32_t bits, int pass) {
    return bits >> shift(pass) & static_cast<uint32_t>(bins(pass) - 1);
  }
};

/// What is known of the k-th largest: its upper digits, and its rank among those that share them.
struct RadixCut {
  uint32_t cut = 0;     ///< the digits found so far, zeros below; in the end the magnitude itself
  uint32_t wanted = 0;  ///< 1 is the largest; in the end: how many of those equal to it belong

  /// Whether a magnitude is still in question in `pass`.
  constexpr bool matches(uint32_t bits, int pass) const {
    return pass == 0 || ((bits ^ cut) >> RadixDigits::shift(pass - 1)) == 0;
  }
  /// The next digit is `digit`; `above` magnitudes in question have a higher one.
  constexpr void narrow(uint32_t digit, uint32_t above, int pass) {
    cut |= digit << RadixDigits::shift(pass);
    wanted -= above;
  }
  /// Whether a magnitude is taken: those equal to the cut as long as `equal_before`, the equal ones
  /// before it, are not enough.
  constexpr bool takes(uint32_t bits, uint32_t equal_before) const {
    return bits > cut || (bits == cut && equal_before < wanted);
  }
  /// How many are taken of `above` magnitudes above the cut and `equal` ones at it.
  constexpr uint32_t taken(uint32_t above, uint32_t equal) const {
    return above + (equal < wanted ? equal : wanted);
  }
};

}  // namespace tw
