// What kernels use of cub::BlockScan, for the emulator; one-dimensional blocks.
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

  /// `output`: the sum over the threads before this one; `total`: that over all.
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
    // no barrier here: the memory must not be used again before one of the caller's
  }
  void ExclusiveSum(T input, T& output) {
    T total;
    ExclusiveSum(input, output, total);
  }

 private:
  TempStorage& memory_;
};

}  // namespace cub
