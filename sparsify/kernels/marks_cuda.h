// Marks: elements of a vector that a selection considers, on a GPU. A warp handles a chunk of 1024
// elements. A chunk has a slot for 32 entries; if more of its elements are marked, it is crowded:
// the slot has a bit for each element, and the values are read from the vector. The order of the
// elements is kept. Included by .cu files only.
#pragma once

#include "engine/cuda/cuda_kernel.h"
#include "sparsify/kernels/magnitude.h"

namespace tw::cuda {

inline constexpr int kWarp = 32, kWarps = kThreads / kWarp;

__device__ inline int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ inline int warp() { return static_cast<int>(threadIdx.x) / kWarp; }
/// Number of this warp in the grid.
__device__ inline int64_t grid_warp() { return blockIdx.x * int64_t{kWarps} + warp(); }
__device__ inline uint32_t count_bits(uint32_t x) { return static_cast<uint32_t>(__popc(x)); }
/// The bits of the lanes before this one.
__device__ inline uint32_t lower_lanes() { return (1u << lane()) - 1; }

struct alignas(8) Entry {
  uint32_t index;  ///< in a crowded chunk: the marks of 32 elements
  float value;
};

/// Thresholds below the one for marks, whose elements are counted in the same pass.
struct Lower {
  static constexpr int kMost = 10;
  int count = 0;
  uint32_t bits[kMost] = {};
};

struct Marks {
  static constexpr int kSlot = kWarp;
  static constexpr int64_t kChunk = int64_t{kSlot} * 32;

  int64_t n = 0;
  float* e = nullptr;
  uint32_t* counts = nullptr;  ///< of each chunk; above kSlot: crowded
  Entry* slots = nullptr;      ///< kSlot of each chunk

  constexpr int64_t chunks() const { return (n + kChunk - 1) / kChunk; }
  /// Blocks with a warp for each chunk.
  constexpr int64_t blocks() const { return (chunks() + kWarps - 1) / kWarps; }

  /// With kAdd: e += g. Marks the chunk's elements of at least `least`; returns their number.
  /// `reached`: in lane l, grows by the number of elements of at least lower.bits[l].
  template <bool kAdd>
  __device__ uint32_t mark(int64_t chunk, const float* g, uint32_t least, const Lower& lower,
                           uint32_t& reached) const {
    constexpr int kBatch = 8;  // loads in flight
    const int64_t first = chunk * kChunk + lane();
    Entry* const slot = slots + chunk * kSlot;
    uint32_t word = 0, count = 0;
    for (int j = 0; j < kWarp; j += kBatch) {
      float u[kBatch], more[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const int64_t i = first + (j + b) * 32;
        u[b] = i < n ? e[i] : 0.0f;
        more[b] = kAdd && i < n ? g[i] : 0.0f;
      }
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const int64_t i = first + (j + b) * 32;
        if (kAdd) u[b] += more[b];
        if (kAdd && i < n) e[i] = u[b];
        const uint32_t bits = magnitude_bits(u[b]);
        const bool marked = i < n && bits >= least;
        const uint32_t all = __ballot_sync(~0u, marked);
        const uint32_t at = count + count_bits(all & lower_lanes());
        if (marked && at < kSlot) slot[at] = {static_cast<uint32_t>(i), u[b]};
        if (lane() == j + b) word = all;
        count += count_bits(all);
        for (int l = 0; l < lower.count; ++l) {
          const uint32_t there = __ballot_sync(~0u, i < n && bits >= lower.bits[l]);
          if (lane() == l) reached += count_bits(there);
        }
      }
    }
    if (count > kSlot) {
      __syncwarp();
      slot[lane()] = {word, 0.0f};
    }
    if (lane() == 0) counts[chunk] = count;
    return count;
  }

  /// Divides the chunks among the warps of the grid, in order: calls body(chunk) for those of this
  /// warp. The same grid divides them the same way.
  template <class Body>
  __device__ void for_own_chunks(int step, const Body& body) const {
    const int64_t warps = int64_t{gridDim.x} * kWarps, each = (chunks() + warps - 1) / warps;
    const int64_t end = min(chunks(), (grid_warp() + 1) * each);
    for (int64_t chunk = grid_warp() * each; chunk < end; chunk += step) body(chunk, end);
  }

  /// Calls body(i, e[i], marked) for the marked elements of this warp's chunks, in order. All lanes
  /// take part, each with one element; marked is false in lanes that have none.
  template <class Body>
  __device__ void visit(const Body& body) const {
    constexpr int kAhead = 4;  // chunks whose loads are in flight
    for_own_chunks(kAhead, [&](int64_t first, int64_t end) {
      const bool mine = lane() < kAhead && first + lane() < end;
      const uint32_t found = mine ? counts[first + lane()] : 0;
      Entry entries[kAhead];
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        const uint32_t count = __shfl_sync(~0u, found, a);
        const bool used = static_cast<uint32_t>(lane()) < count;
        entries[a] = used ? slots[(first + a) * kSlot + lane()] : Entry{};
      }
#pragma unroll
      for (int a = 0; a < kAhead; ++a)
        visit_chunk(first + a, __shfl_sync(~0u, found, a), entries[a], body);
    });
  }

 private:
  /// `entry`: this lane's part of the slot.
  template <class Body>
  __device__ void visit_chunk(int64_t chunk, uint32_t count, const Entry& entry,
                              const Body& body) const {
    const bool crowded = count > kSlot;
    uint32_t left = crowded ? __ballot_sync(~0u, entry.index != 0) : count > 0;
    for (; left != 0; left &= left - 1) {
      int64_t i = entry.index;
      float value = entry.value;
      bool marked = static_cast<uint32_t>(lane()) < count;
      if (crowded) {
        const int word = __ffs(static_cast<int>(left)) - 1;
        marked = __shfl_sync(~0u, entry.index, word) >> lane() & 1;
        i = chunk * kChunk + word * 32 + lane();
        value = marked ? e[i] : 0.0f;
      }
      body(i, value, marked);
    }
  }
};

}  // namespace tw::cuda
