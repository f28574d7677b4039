// Collectives over a Communicator. Each says its steps and the bytes it puts on the wire.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "engine/registry.h"

namespace tw {

/// Sums `data` over all ranks, in place; every rank ends with the same bits.
/// `scratch` holds at least as many floats as `data`.
using Allreduce =
    std::function<void(Context&, Communicator&, std::span<float> data, std::span<float> scratch)>;
/// Dense collectives by name (`--allreduce`).
Registry<Allreduce>& allreduces();

/// Root's bytes to everyone: binomial tree, ceil(log2 P) messages deep, n bytes each.
void broadcast(Context& ctx, Communicator& comm, int root, Bytes data);
/// Everybody waits for everybody (dissemination, ceil(log2 P) rounds of empty messages).
void barrier(Context& ctx, Communicator& comm);

/// Blocks of different sizes, one per rank; keeps its memory between calls.
class GatheredBlocks {
 public:
  /// The block of `rank` from the last allgather; aligned like the sum of the sizes before it, so
  /// blocks of whole floats can be read as floats.
  ConstBytes operator[](int rank) const;
  int size() const { return ranks_; }

 private:
  friend void allgather(Context&, Communicator&, ConstBytes, size_t, GatheredBlocks&);

  const std::byte* payload() const { return memory_.data() + ranks_ * sizeof(uint64_t); }
  std::byte* payload() { return memory_.data() + ranks_ * sizeof(uint64_t); }
  uint64_t& size_at(int position) { return reinterpret_cast<uint64_t*>(payload())[-1 - position]; }

  // own block first, then those of the next ranks; in front of them their sizes, backwards, so
  // that the first n sizes and blocks lie together as they travel
  std::vector<std::byte> memory_, incoming_;
  std::vector<size_t> offsets_;  // in the payload
  int ranks_ = 0, self_ = 0;
};

/// Everybody's block to everybody (Bruck: ceil(log2 P) rounds, any P, each rank receives the
/// other P-1 blocks once plus 8 bytes a block for its size).
/// A message holds up to `expected` bytes per block; what exceeds that follows in a second message
/// (all ranks pass the same `expected`; it sizes buffers and is no limit).
void allgather(Context& ctx, Communicator& comm, ConstBytes mine, size_t expected,
               GatheredBlocks& blocks);

}  // namespace tw
