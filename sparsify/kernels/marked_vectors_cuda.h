// MarkedVectors: moves marked elements of vectors to a sparse vector on the host, on a GPU. Vectors
// share launches and copies. Included by .cu files only.
#pragma once

#include <vector>

#include "engine/core/buffer.h"
#include "engine/cuda/phases.h"
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

/// How the elements of a vector are marked.
struct Threshold {
  size_t vector = 0;
  const float* g = nullptr;  ///< added first, if not null
  uint32_t least = 0;        ///< least magnitude bits that are marked
  Lower lower{};
};

class MarkedVectors {
 public:
  /// Refers to at most kMostBodies vectors. What was marked is undefined.
  void refer_to(std::span<const std::span<float>> vectors);
  void refer_to(std::span<float> e) { refer_to({&e, 1}); }

  const Marks& marks(size_t vector) const { return marks_[vector]; }
  SearchState state(size_t vector) const {
    return {searches_.as<Search>().data() + vector, memory_.as<SearchMemory>().data() + vector};
  }

  /// Prepares for a selection from vectors; marks of at least `least`.
  void begin(Context& ctx, std::span<const Threshold> thresholds);
  /// Marks elements. Either all thresholds have a g or none.
  void mark(Context& ctx, std::span<const Threshold> thresholds);
  /// Copies the results of all vectors to the host; waits for the device.
  std::span<const Search> found(Context& ctx);

  struct Take {
    size_t vector;
    Choice choice;
    size_t most;  ///< number of elements that are moved
    uint32_t base;
  };
  /// Moves the chosen elements to `out`, those of a vector in ascending order; the vector becomes 0
  /// there. Returns a result for each. Waits for the device once.
  std::span<const Search> take(Context& ctx, std::span<const Take> takes, SparseVector& out);

 private:
  std::vector<Marks> marks_;
  Buffer counts_, slots_, searches_, memory_, parts_, moved_;
  std::vector<Search> found_;
};

}  // namespace tw::cuda
