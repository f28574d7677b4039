// MarkedVector: moves marked elements of a vector to a sparse vector on the host, on a GPU.
// Included by .cu files only.
#pragma once

#include "engine/core/buffer.h"
#include "sparsify/kernels/radix_select_cuda.h"
#include "sparsify/kernels/sparse_vector.h"

namespace tw::cuda {

/// Which marked elements are taken.
struct Choice {
  RadixCut cut{};             ///< without a search; a search starts from it and narrows it
  uint32_t resolution = ~0u;  ///< mask of the magnitude bits that are compared
  bool search = false;        ///< for the cut.wanted largest
  bool complete = false;      ///< if fewer than cut.wanted are marked, first mark all non-zeros
};

class MarkedVector {
 public:
  /// Refers to e. What was marked is undefined.
  void refer_to(std::span<float> e);
  /// refer_to(), and prepares the memory for marks of at least `least`.
  void begin(Context& ctx, std::span<float> e, uint32_t least);

  const Marks& marks() const { return marks_; }
  SearchMemory* memory() const { return reinterpret_cast<SearchMemory*>(memory_.data()); }

  /// Copies the results to the host; waits for the device.
  Search found(Context& ctx) const;
  /// Moves the chosen elements of e to `out`, in ascending order, at most `most` of them; e becomes
  /// 0 there. Waits for the device once.
  Search take(Context& ctx, const Choice& choice, size_t most, uint32_t base, SparseVector& out);

 private:
  Marks marks_;
  Buffer counts_, slots_, memory_, parts_, moved_;
};

}  // namespace tw::cuda
