// Collectives over a Communicator. The file with a collective's name describes its steps, the bytes
// that it sends and its seconds by the cost model.
#pragma once

#include <cstring>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

#include "comm/communicator.h"
#include "comm/cost_model.h"
#include "engine/core/registry.h"

namespace tw {

/// Copies root's `data` to all ranks; all pass the same size.
using Broadcast = std::function<void(Context&, Communicator&, int root, Bytes data)>;
/// Sums `data` over all ranks into root's `data`; the `data` of the other ranks is undefined
/// afterwards. `scratch` holds at least as many floats as `data`; Fault otherwise.
using Reduce = std::function<void(Context&, Communicator&, int root, std::span<float> data,
                                  std::span<float> scratch)>;
/// Sums `data` over all ranks, in place; all ranks get the same bits.
/// `scratch` holds at least as many floats as `data`; Fault otherwise.
using Allreduce =
    std::function<void(Context&, Communicator&, std::span<float> data, std::span<float> scratch)>;

/// What is registered under a collective's name.
template <class Run>
struct Collective {
  /// Makes the collective of one rank. It may measure the link at its first call and keep the
  /// result, so all ranks make the same calls in the same order.
  std::function<Run(const Settings&)> make{};
  DenseCost seconds = unknown_seconds;
  /// Bytes that all ranks send in a broadcast or reduce of n floats, beyond (P-1) 4n.
  uint64_t (*more_bytes)(int ranks, size_t n) = [](int, size_t) -> uint64_t { return 0; };
  /// The transport's library sends, f32 in the memory of the device; bytes_sent() does not count.
  bool by_library = false;

  Run operator()(const Settings& settings) const { return make(settings); }
};

/// Dense collectives by name: that of their source file, or a short alias (`lp`).
Registry<Collective<Broadcast>>& broadcasts();
Registry<Collective<Reduce>>& reduces();
Registry<Collective<Allreduce>>& allreduces();  // `--allreduce`

/// The settings of all collectives, at their defaults.
Settings collective_settings();

/// The broadcast `binomial_tree`.
void broadcast(Context& ctx, Communicator& comm, int root, Bytes data);
/// Returns when all ranks have called it (dissemination, ceil(log2 P) rounds of empty messages).
void barrier(Context& ctx, Communicator& comm);

/// Blocks of different sizes, one per rank; keeps its memory between calls.
class GatheredBlocks {
 public:
  /// The block of `rank` from the last allgather. Blocks are stored without padding, so blocks of
  /// whole floats can be read as one array of floats.
  ConstBytes operator[](int rank) const;
  /// The same; Fault unless it has `bytes` bytes.
  ConstBytes exactly(int rank, size_t bytes) const;
  int size() const { return ranks_; }

 private:
  friend void allgather(Context&, Communicator&, ConstBytes, size_t, GatheredBlocks&, size_t);

  // memory_ of P ranks. Position i is the block of rank (self + i) mod P:
  //
  //   u64 size[P-1] ... u64 size[1] u64 size[0] | block 0 | block 1 | ... | block P-1
  //                                             ^ payload()
  //
  // A round sends blocks 0 .. n-1 and their sizes. Sizes are stored downwards from the payload, so
  // for every n this is one range of memory, from size[n-1] to the end of block n-1. No round
  // copies what it sends.
  const std::byte* payload() const { return memory_.data() + ranks_ * sizeof(uint64_t); }
  std::byte* payload() { return memory_.data() + ranks_ * sizeof(uint64_t); }
  uint64_t& size_at(int position) { return reinterpret_cast<uint64_t*>(payload())[-1 - position]; }

  std::vector<std::byte> memory_, incoming_;
  std::vector<size_t> offsets_;  // of position i in the payload; one more for the end
  int ranks_ = 0, self_ = 0;
};

/// Longest block of an allgather whose caller sets no limit: 16 MiB.
inline constexpr size_t kMostBlock = size_t{16} << 20;

/// Copies every rank's block to all ranks (Bruck: ceil(log2 P) rounds for any P; each rank receives
/// the other P-1 blocks once, and 8 bytes per block for its size). Host memory. A message holds up
/// to `expected` bytes per block; longer blocks cost a second message. `expected` sizes buffers and
/// is the same on all ranks. Fault when a block exceeds `most` bytes, so that the length that a
/// rank announces cannot fill the memory of the others.
void allgather(Context& ctx, Communicator& comm, ConstBytes mine, size_t expected,
               GatheredBlocks& blocks, size_t most = kMostBlock);
/// Seconds of an allgather of equal blocks, n elements of 4 bytes together.
double allgather_seconds(const LinkCost& link, int ranks, double n);

/// Every rank's item, in rank order, on every rank. Allocates: not for the training step.
template <class T>
std::vector<T> gather(Context& ctx, Communicator& comm, const T& item) {
  static_assert(std::is_trivially_copyable_v<T>);
  GatheredBlocks blocks;
  allgather(ctx, comm, std::as_bytes(std::span(&item, 1)), sizeof(T), blocks, sizeof(T));
  std::vector<T> items(static_cast<size_t>(comm.size()));
  for (int r = 0; r < comm.size(); ++r)
    std::memcpy(&items[static_cast<size_t>(r)], blocks.exactly(r, sizeof(T)).data(), sizeof(T));
  return items;
}

// The same for host memory, on the communicator's own host context.

void broadcast(Communicator& comm, int root, Bytes data);
void barrier(Communicator& comm);
void allgather(Communicator& comm, ConstBytes mine, size_t expected, GatheredBlocks& blocks,
               size_t most = kMostBlock);
/// The allreduce `ring`; allocates its scratch.
void allreduce(Communicator& comm, std::span<float> data);
template <class T>
std::vector<T> gather(Communicator& comm, const T& item) {
  return gather(comm.host(), comm, item);
}

}  // namespace tw
