// Bitmask: one bit per element of a vector, on a GPU. A warp handles 32 words, a block one tile.
// Entries are moved out in index order, independent of the order of the blocks. Included by .cu
// files only.
#pragma once

#include "engine/core/buffer.h"
#include "engine/cuda/cuda_kernel.h"
#include "sparsify/kernels/radix_select.h"
#include "sparsify/kernels/selection.h"

namespace tw::cuda {

inline constexpr int kWarp = 32, kWarps = kThreads / kWarp;
inline constexpr int64_t kTileWords = kThreads, kTileElements = kTileWords * 32;

/// State of a selection in device memory, for the next kernel.
struct Search {
  static constexpr int kMostLower = 10;
  static constexpr unsigned long long kNone = ~0ull;

  uint32_t least;                        ///< least magnitude bits that are marked
  uint32_t settled;                      ///< 1 if the cut is known
  RadixCut cut;                          ///< which marked entries are taken
  unsigned long long marked;             ///< number of marked elements
  unsigned long long lower[kMostLower];  ///< elements at or above each lower threshold
  unsigned long long nonfinite;          ///< first index of a NaN or infinity
  unsigned long long moved;              ///< entries that were taken
};
struct SearchMemory {
  Search search;
  uint32_t counts[RadixDigits::kPasses][RadixDigits::kMostBins];
};

__device__ inline int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ inline int warp() { return static_cast<int>(threadIdx.x) / kWarp; }

/// Calls visit(i, e[i], marked) for each non-empty word of this warp's 32 words from `first` on.
/// All lanes take part, each with one element; an unmarked element is passed as 0.
template <class Visit>
__device__ void visit_words(const uint32_t* words, int64_t first, const float* e,
                            const Visit& visit) {
  constexpr uint32_t all = ~0u;
  const uint32_t mine = words[first + lane()];
  for (uint32_t left = __ballot_sync(all, mine != 0); left != 0; left &= left - 1) {
    const int j = __ffs(static_cast<int>(left)) - 1;
    const bool marked = __shfl_sync(all, mine, j) >> lane() & 1;
    const int64_t i = (first + j) * 32 + lane();
    visit(i, marked ? e[i] : 0.0f, marked);
  }
}

class Bitmask {
 public:
  /// Prepares for n elements; magnitudes of at least `least` will be marked, of which at least
  /// `wanted` are needed. Does not clear the bits.
  void begin(Context& ctx, size_t n, uint32_t least, size_t wanted);
  /// Prepares a radix search for the `wanted` largest.
  void begin_search(Context& ctx, size_t wanted);
  /// Sets the cut of take() without a search.
  void set_cut(Context& ctx, RadixCut cut);

  uint32_t* words() const { return words_.as<uint32_t>().data(); }
  SearchMemory* memory() const { return reinterpret_cast<SearchMemory*>(search_.data()); }
  int64_t size() const { return n_; }
  int64_t tiles() const { return (n_ + kTileElements - 1) / kTileElements; }

  /// Copies the state to the host; waits for the device.
  Search found(Context& ctx) const;
  /// Moves the marked entries of e that the cut takes to `out`, in ascending order, at most `most`
  /// of them; e becomes 0 there. `resolution`: mask of the magnitude bits that are compared. Waits
  /// for the device once.
  Search take(Context& ctx, uint32_t resolution, size_t most, std::span<float> e, uint32_t base,
              SparseVector& out);

 private:
  int64_t n_ = 0;
  Buffer words_, search_, tiles_, moved_;
};

}  // namespace tw::cuda
