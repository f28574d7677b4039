// The phases of a radix search on a GPU (engine/cuda/phases.h). Each counts one digit of the
// matching magnitudes; all blocks narrow the search by the counts of the phase before. Counts are
// integers, so the order of blocks does not matter. Included by .cu files only.
#pragma once

#include <cub/block/block_scan.cuh>

#include "sparsify/kernels/marks_cuda.h"
#include "sparsify/kernels/radix_select.h"

namespace tw::cuda {

/// Results of a selection in device memory, for the next kernel and for the host.
struct Search {
  static constexpr unsigned long long kNone = ~0ull;

  uint32_t least = 0;                           ///< least magnitude bits that are marked
  RadixCut cut{};                               ///< which marked elements are taken
  unsigned long long marked = 0;                ///< number of marked elements
  unsigned long long lower[Lower::kMost] = {};  ///< elements at or above each lower threshold
  unsigned long long nonfinite = kNone;         ///< first index of a NaN or infinity
  unsigned long long moved = 0;                 ///< entries that were taken
};

struct SearchProgress {
  RadixCut cut;
  bool settled;  ///< the cut is final
};

struct SearchMemory {
  SearchProgress before[RadixDigits::kPasses + 1];  ///< each pass, from 1 on
  uint32_t counts[RadixDigits::kPasses][RadixDigits::kMostBins];
  uint32_t barrier;
};

/// A selection in device memory.
struct SearchState {
  Search* search;
  SearchMemory* memory;

  /// Prepares for marks of at least `least`, and for a search. Called by one block.
  __device__ void begin(uint32_t least) const {
    auto* const words = reinterpret_cast<uint32_t*>(memory);
    constexpr auto all = static_cast<int>(sizeof(SearchMemory) / sizeof(uint32_t));
    for (int i = static_cast<int>(threadIdx.x); i < all; i += kThreads) words[i] = 0;
    if (threadIdx.x > 0) return;
    *search = Search{};
    search->least = least;
  }

  /// The search before `pass`, from the counts of the pass before it; `start`: before pass 0.
  /// Called by all threads of all blocks.
  __device__ SearchProgress advance(RadixCut start, int pass) const {
    if (pass == 0) return {start, false};
    const SearchProgress now =
        narrow(pass == 1 ? SearchProgress{start, false} : memory->before[pass - 1], pass - 1);
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
        atomicMin(&search->nonfinite, static_cast<unsigned long long>(i));
      if (marked && cut.matches(counted, pass))
        atomicAdd(&bins[RadixDigits::digit(counted, pass)], 1u);
    });
    __syncthreads();
    for (int b = first; b < all; b += kThreads)
      if (bins[b] > 0) atomicAdd(&memory->counts[pass][b], bins[b]);
  }

 private:
  __device__ SearchProgress narrow(const SearchProgress& last, int pass) const {
    using Scan = cub::BlockScan<uint32_t, kThreads>;
    __shared__ typename Scan::TempStorage shared;
    __shared__ SearchProgress next;
    if (last.settled) return last;
    const uint32_t wanted = last.cut.wanted;
    // thread 0 has the highest bins
    const int bins = RadixDigits::bins(pass), each = bins / kThreads;
    const int top = bins - 1 - static_cast<int>(threadIdx.x) * each;
    const uint32_t* const counts = memory->counts[pass];
    uint32_t mine = 0, above = 0, total = 0;
    for (int b = 0; b < each; ++b) mine += counts[top - b];
    Scan(shared).ExclusiveSum(mine, above, total);

    const bool bad = search->nonfinite != Search::kNone;
    // take nothing, or everything that is marked
    if (bad || total < wanted)
      return {bad ? RadixCut{.cut = ~0u, .wanted = 0} : RadixCut{.cut = 0, .wanted = ~0u}, true};
    if (threadIdx.x == 0) next = last;
    __syncthreads();
    if (above < wanted && above + mine >= wanted) {
      int bin = top;
      for (; above + counts[bin] < wanted; --bin) above += counts[bin];
      next.cut.narrow(static_cast<uint32_t>(bin), above, pass);
    }
    __syncthreads();
    return next;
  }
};

}  // namespace tw::cuda
