// Packing of codes of b = 8, 4, 2 or 1 bits: ceil(n b / 8) bytes for n codes. In each 64 codes (the
// last: the rest) of c bytes, byte j has the codes j, j + c, j + 2 c ..., lowest bits first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tw {

inline constexpr size_t kPackedTogether = 64;  ///< codes that are packed together

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
