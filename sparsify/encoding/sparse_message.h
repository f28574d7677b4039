// Entry block: what a sparse exchange sends: a control word of 16 bytes and encoded entries.
#pragma once

#include <vector>

#include "comm/collectives/collectives.h"
#include "sparsify/encoding/sparse_codec.h"
#include "sparsify/exchange.h"

namespace tw {

static_assert(sizeof(ControlWord) == 16);

/// Bytes of a block of n entries at most.
inline size_t block_bound(const SparseCodec& wire, size_t n) {
  return sizeof(ControlWord) + wire.bound(n);
}

/// Writes a block into `memory`, which grows as needed, and returns it. The entries were rounded.
ConstBytes write_block(const SparseCodec& wire, const Control& control, const SparseView& entries,
                       std::vector<std::byte>& memory);

/// Reads the block that `rank` sent: merges its control, returns its entries, which lie in the
/// block or in `room`. Throws Fault when it is damaged.
SparseView read_block(const SparseCodec& wire, ConstBytes block, int rank, size_t d,
                      Control& control, SparseVector& room);

/// Everybody's block on every rank.
class GatheredEntries {
 public:
  explicit GatheredEntries(const SparseCodec& wire) : wire_(wire) {}

  /// Sends `mine` (rounded) to all ranks and merges everybody's control; returns everybody's
  /// entries by rank, usable until the next call. `usual`: entries a block has as a rule, the same
  /// on all ranks. Bytes over all ranks: (P-1) (24 P + those of all ranks' encoded entries).
  std::span<const SparseView> gather(Context& ctx, Communicator& comm, const SparseView& mine,
                                     size_t usual, size_t d, Control& control);
  /// What this rank's entries cost in the last call.
  const Traffic& load() const { return load_; }

 private:
  SparseCodec wire_;
  std::vector<std::byte> message_;
  GatheredBlocks blocks_;
  std::vector<SparseVector> rooms_;
  std::vector<SparseView> parts_;
  Traffic load_;
};

/// Bytes of an allgather of blocks besides their entries.
constexpr uint64_t gather_overhead(int ranks) {
  const uint64_t p = static_cast<uint64_t>(ranks);
  return (p - 1) * p * (sizeof(ControlWord) + sizeof(uint64_t));
}

/// What a rank keeps of what it selected: it goes back to its residual.
class ResidualReturn {
 public:
  /// What `entries` lose when they are rounded for the wire.
  void rounding(Context& ctx, const SparseCodec& wire, SparseVector& entries,
                std::span<float> residual);
  /// What this rank selected and the sum does not have; both ascend.
  void missing(Context& ctx, const SparseView& mine, std::span<const uint32_t> kept,
               std::span<float> residual);

 private:
  SparseVector entries_;
};

}  // namespace tw
