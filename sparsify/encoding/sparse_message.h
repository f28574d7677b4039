// Block: what one rank sends in a sparse exchange, a control word of 16 bytes and encoded entries.
#pragma once

#include <vector>

#include "comm/collectives/collectives.h"
#include "sparsify/encoding/sparse_codec.h"
#include "sparsify/exchange.h"

namespace tw {

static_assert(sizeof(ControlWord) == 16);

/// The most bytes that a block of n entries takes.
inline size_t block_bound(const SparseCodec& codec, size_t n) {
  return sizeof(ControlWord) + codec.bound(n);
}

/// Writes a block at the start of `memory`, which grows as needed, and returns it. The codec has
/// already rounded the entries.
ConstBytes write_block(const SparseCodec& codec, const Control& control, const SparseView& entries,
                       std::vector<std::byte>& memory);

/// Reads the block that `rank` sent: merges its control word and returns its entries, which point
/// into the block or into `decoded`. Throws Fault if the block is damaged.
SparseView read_block(const SparseCodec& codec, ConstBytes block, int rank, size_t d,
                      Control& control, SparseVector& decoded);

}  // namespace tw
