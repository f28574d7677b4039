// Emulated cub::BlockScan: the members that kernels use, for one-dimensional blocks.
#pragma once

#include "tests/emulator/cuda_language.h"

namespace cub {

template <class T, int kThreads>
class BlockScan {
 public:
  struct TempStorage {
    T values[kThreads];
  };

  explicit BlockScan(TempStorage& memory) : memory_(memory) {}

  /// `output`: the sum over all earlier threads; `total`: the sum over all threads.
  void ExclusiveSum(T input, T& output, T& total) {
    memory_.values[threadIdx.x] = input;
    __syncthreads();
    T before{};
    total = T{};
    for (unsigned t = 0; t < kThreads; ++t) {
      if (t == threadIdx.x) before = total;
      total += memory_.values[t];
    }
    output = before;
    // as in CUB, the caller needs a barrier before it reuses the memory
  }
  void ExclusiveSum(T input, T& output) {
    T total;
    ExclusiveSum(input, output, total);
  }

 private:
  TempStorage& memory_;
};

}  // namespace cub
