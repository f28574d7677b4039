// Collectives over a Communicator. Each says its steps and the bytes it puts on the wire in the
// file that has its name; what it costs in seconds stands in comm/cost_model.h.
#pragma once

#include <cstring>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

#include "comm/communicator.h"
#include "engine/core/registry.h"

namespace tw {

/// Root's bytes to everyone.
using Broadcast = std::function<void(Context&, Communicator&, int root, Bytes data)>;
/// Sums `data` over all ranks into root's `data`; what the others' `data` holds afterwards is not
/// defined. `scratch` holds at least as many floats as `data`.
using Reduce = std::function<void(Context&, Communicator&, int root, std::span<float> data,
                                  std::span<float> scratch)>;
/// Sums `data` over all ranks, in place; every rank ends with the same bits.
/// `scratch` holds at least as many floats as `data`.
using Allreduce =
    std::function<void(Context&, Communicator&, std::span<float> data, std::span<float> scratch)>;

/// Dense collectives by name. A factory makes the collective of one rank: what it measures at its
/// first call it keeps for later ones, and all ranks call it in the same order.
Registry<std::function<Broadcast(const Settings&)>>& broadcasts();
Registry<std::function<Reduce(const Settings&)>>& reduces();
Registry<std::function<Allreduce(const Settings&)>>& allreduces();  // `--allreduce`

/// The settings of every collective, at their defaults.
Settings collective_settings();

/// The broadcast called `mst`: what everything that is not a benchmark uses.
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

/// Every rank's item, in rank order, on every rank; for what happens now and then.
template <class T>
std::vector<T> gather(Context& ctx, Communicator& comm, const T& item) {
  static_assert(std::is_trivially_copyable_v<T>);
  GatheredBlocks blocks;
  allgather(ctx, comm, std::as_bytes(std::span(&item, 1)), sizeof(T), blocks);
  std::vector<T> items(static_cast<size_t>(comm.size()));
  for (int r = 0; r < comm.size(); ++r)
    std::memcpy(&items[static_cast<size_t>(r)], blocks[r].data(), sizeof(T));
  return items;
}

}  // namespace tw
