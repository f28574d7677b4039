// Selection on a GPU. Each stage is one launch for several vectors:
//
//   threshold   the least magnitude that a selection considers: that of the caller, or estimated
//               from a histogram of a sample (candidates.cu)
//   mark        one pass over memory: e += g; the elements from the threshold on are kept, in their
//               order (Marks)
//   take        phases with barriers between them (engine/cuda/phases.h). Each of up to three
//               counts a digit of the marked magnitudes in a histogram and narrows the cut by the
//               digit before (Search). The next one counts the elements that each warp takes, which
//               says where they go; the last one moves them to the output and leaves zeros.
//
// MarkedVectors has the memory of these stages and runs them. All counts are integers, so that the
// order of blocks does not matter. Included by .cu files only.
#pragma once

#include <cub/block/block_scan.cuh>
#include <vector>

#include "engine/core/buffer.h"
#include "engine/cuda/phases.h"
#include "sparsify/kernels/radix_select.h"
#include "sparsify/kernels/sparse_vector.h"

namespace tw::cuda {

inline constexpr int kWarp = 32, kWarps = kThreads / kWarp;

__device__ inline int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ inline int warp() { return static_cast<int>(threadIdx.x) / kWarp; }
/// Number of this warp in the grid.
__device__ inline int64_t grid_warp() { return blockIdx.x * int64_t{kWarps} + warp(); }
__device__ inline uint32_t count_bits(uint32_t x) { return static_cast<uint32_t>(__popc(x)); }
/// The bits of the lanes before this one.
__device__ inline uint32_t lower_lanes() { return (1u << lane()) - 1; }

/// The marked elements of a vector. A warp handles a chunk of 1024 elements. A chunk has a slot for
/// 32 entries; if more of its elements are marked, it is crowded: the slot has a bit for each
/// element, and the values are read from the vector.
struct Marks {
  static constexpr int kSlot = kWarp;
  static constexpr int64_t kChunk = int64_t{kSlot} * 32;

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

/// Counts the bins of a histogram from the highest down until `wanted` is reached. Called by all
/// threads of a block, of which one calls found(bin, number in higher bins), unless the number in
/// all bins, which is returned, is smaller.
template <class Found>
__device__ uint32_t find_bin(const uint32_t* counts, int bins, uint32_t wanted,
                             const Found& found) {
  using Scan = cub::BlockScan<uint32_t, kThreads>;
  __shared__ typename Scan::TempStorage shared;
  // thread 0 has the highest bins
  const int each = bins / kThreads, top = bins - 1 - static_cast<int>(threadIdx.x) * each;
  uint32_t mine = 0, above = 0, total = 0;
  for (int b = 0; b < each; ++b) mine += counts[top - b];
  Scan(shared).ExclusiveSum(mine, above, total);
  if (above < wanted && above + mine >= wanted) {
    int bin = top;
    for (; above + counts[bin] < wanted; --bin) above += counts[bin];
    found(static_cast<uint32_t>(bin), above);
  }
  return total;
}

/// The search for the cut of one vector, in device memory.
struct Search {
  /// Results, for the next kernel and for the host.
  struct Found {
    static constexpr unsigned long long kNone = ~0ull;

    uint32_t least = 0;                                  ///< least magnitude bits that are marked
    RadixCut cut{};                                      ///< which marked elements are taken
    unsigned long long marked = 0;                       ///< number of marked elements
    unsigned long long lower[Marks::Lower::kMost] = {};  ///< those from each lower threshold on
    unsigned long long nonfinite = kNone;                ///< first index of a NaN or infinity
    unsigned long long moved = 0;                        ///< entries that were taken
  };
  struct Progress {
    RadixCut cut;
    bool settled;  ///< the cut is final
  };
  struct Memory {
    Progress before[RadixDigits::kPasses + 1];  ///< each pass, from 1 on
    uint32_t counts[RadixDigits::kPasses][RadixDigits::kMostBins];
    uint32_t barrier;
  };

  Found* found;
  Memory* memory;

  /// Prepares for marks of at least `least`, and for a search. Called by one block.
  __device__ void begin(uint32_t least) const {
    auto* const words = reinterpret_cast<uint32_t*>(memory);
    constexpr auto all = static_cast<int>(sizeof(Memory) / sizeof(uint32_t));
    for (int i = static_cast<int>(threadIdx.x); i < all; i += kThreads) words[i] = 0;
    if (threadIdx.x > 0) return;
    *found = Found{};
    found->least = least;
  }

  /// The search before `pass`, from the counts of the pass before it; `start`: before pass 0.
  /// Called by all threads of all blocks.
  __device__ Progress advance(RadixCut start, int pass) const {
    if (pass == 0) return {start, false};
    const Progress now =
        narrow(pass == 1 ? Progress{start, false} : memory->before[pass - 1], pass - 1);
    if (blockIdx.x == 0 && threadIdx.x == 0) memory->before[pass] = now;
    return now;
  }

  /// Counts a digit. source.visit(f) calls f(i, element, true) for each element of the source,
  /// divided among all threads of the grid; elements with `false` are not counted.
  template <class Source>
  __device__ void count_digits(const Source& source, int pass, uint32_t resolution,
                               RadixCut cut) const {
    __shared__ uint32_t bins[RadixDigits::kMostBins];
    const int first = static_cast<int>(threadIdx.x), all = RadixDigits::bins(pass);
    for (int b = first; b < all; b += kThreads) bins[b] = 0;
    __syncthreads();
    source.visit([&](int64_t i, float value, bool marked) {
      const uint32_t bits = magnitude_bits(value), counted = bits & resolution;
      if (marked && pass == 0 && bits >= kInfinityBits)
        atomicMin(&found->nonfinite, static_cast<unsigned long long>(i));
      if (marked && cut.matches(counted, pass))
        atomicAdd(&bins[RadixDigits::digit(counted, pass)], 1u);
    });
    __syncthreads();
    for (int b = first; b < all; b += kThreads)
      if (bins[b] > 0) atomicAdd(&memory->counts[pass][b], bins[b]);
  }

 private:
  __device__ Progress narrow(const Progress& last, int pass) const {
    __shared__ Progress next;
    if (last.settled) return last;
    if (threadIdx.x == 0) next = last;
    __syncthreads();
    const uint32_t total =
        find_bin(memory->counts[pass], RadixDigits::bins(pass), last.cut.wanted,
                 [&](uint32_t bin, uint32_t above) { next.cut.narrow(bin, above, pass); });
    __syncthreads();
    // take nothing, or everything that is marked
    if (found->nonfinite != Found::kNone) return {{.cut = ~0u, .wanted = 0}, true};
    if (total < last.cut.wanted) return {{.cut = 0, .wanted = ~0u}, true};
    return next;
  }
};

/// Moves marked elements of vectors to a sparse vector on the host. Vectors share launches and
/// copies.
class MarkedVectors {
 public:
  /// How the elements of a vector are marked.
  struct Threshold {
    size_t vector = 0;
    const float* g = nullptr;  ///< added first, if not null
    uint32_t least = 0;        ///< least magnitude bits that are marked
    Marks::Lower lower{};
  };
  /// Which marked elements are taken.
  struct Take {
    size_t vector = 0;
    size_t most = 0;  ///< number of elements that are moved
    uint32_t base = 0;
    RadixCut cut{};             ///< without a search; a search starts from it and narrows it
    uint32_t resolution = ~0u;  ///< mask of the magnitude bits that are compared
    bool search = false;        ///< for the cut.wanted largest
    bool complete = false;      ///< if fewer than cut.wanted are marked, first mark all non-zeros
  };

  /// Refers to at most kMostBodies vectors. What was marked is undefined.
  void refer_to(std::span<const std::span<float>> vectors);
  void refer_to(std::span<float> e) { refer_to({&e, 1}); }

  const Marks& marks(size_t vector) const { return marks_[vector]; }
  Search search(size_t vector) const {
    return {found_on_device_.as<Search::Found>().data() + vector,
            memory_.as<Search::Memory>().data() + vector};
  }

  /// Prepares for a selection from vectors; marks of at least `least`.
  void begin(Context& ctx, std::span<const Threshold> thresholds);
  /// Marks elements. Either all thresholds have a g or none.
  void mark(Context& ctx, std::span<const Threshold> thresholds);
  /// Copies the results of all vectors to the host; waits for the device.
  std::span<const Search::Found> found(Context& ctx);
  /// Moves the chosen elements to `out`, those of a vector in ascending order; the vector becomes 0
  /// there. Returns a result for each. Waits for the device once.
  std::span<const Search::Found> take(Context& ctx, std::span<const Take> takes, SparseVector& out);

 private:
  std::vector<Marks> marks_;
  Buffer counts_, slots_, found_on_device_, memory_, parts_;
  std::vector<Buffer> moved_;  // those before the last stay: freeing waits for kernels of all GPUs
  std::vector<Search::Found> found_;
};

}  // namespace tw::cuda
