// Blocks of values as codes of b = 8, 4, 2 or 1 bits: their magnitudes and scales, the draws for
// their rounding, and the packing: ceil(n b / 8) bytes for n codes. In each 64 codes (the last: the
// rest) of c bytes, byte j has the codes j, j + c, j + 2 c ..., lowest bits first.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/core/rng.h"

namespace tw {

inline constexpr size_t kPackedTogether = 64;  ///< codes that are packed together

/// The last bits of a scale as an integer, which are 0: it has 8 significant bits, or 4.
constexpr uint32_t dropped_bits(int bits) { return bits == 8 ? 0xffff : 0xfffff; }

/// body<bits>(), for a number of bits that is known when the program runs.
template <class Body>
void with_bits(int bits, const Body& body) {
  if (bits == 8) return body.template operator()<8>();
  if (bits == 4) return body.template operator()<4>();
  if (bits == 2) return body.template operator()<2>();
  body.template operator()<1>();
}

}  // namespace tw

#define TW_KERNELS "sparsify/encoding/block_codes_loops.h"
#include "engine/core/each_instruction_set.h"
