// Radix search: finds the k-th largest magnitude by counting digits, the highest first. This file
// has the device-independent part.
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

/// The state of a search: the upper digits of the k-th largest, and its rank among the magnitudes
/// that share them.
struct RadixCut {
  uint32_t cut = 0;     ///< the digits found so far, zeros below; at the end the magnitude
  uint32_t wanted = 0;  ///< the rank, from 1; at the end how many equal to cut are taken

  /// Whether a magnitude has the digits found before `pass`.
  constexpr bool matches(uint32_t bits, int pass) const {
    return pass == 0 || ((bits ^ cut) >> RadixDigits::shift(pass - 1)) == 0;
  }
  /// Adds the next digit; `above` of the matching magnitudes have a higher one.
  constexpr void narrow(uint32_t digit, uint32_t above, int pass) {
    cut |= digit << RadixDigits::shift(pass);
    wanted -= above;
  }
  /// Whether a magnitude is taken; one equal to the cut only if fewer than `wanted` equal ones come
  /// before it.
  constexpr bool takes(uint32_t bits, uint32_t equal_before) const {
    return bits > cut || (bits == cut && equal_before < wanted);
  }
  /// How many are taken of `above` magnitudes above the cut and `equal` ones at it.
  constexpr uint32_t taken(uint32_t above, uint32_t equal) const {
    return above + (equal < wanted ? equal : wanted);
  }
};

}  // namespace tw
