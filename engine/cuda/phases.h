// Kernels of several phases: what the blocks write in a phase, all blocks read in the next.
// Included by .cu files only.
#pragma once

#include "engine/cuda/cuda_kernel.h"

namespace tw::cuda {

/// Waits for all blocks of a cooperative launch. `barrier`: 0 before the first use. (Cooperative
/// groups' sync() has a trap, for grids that were launched otherwise.)
__device__ inline void grid_barrier(uint32_t* barrier) {
  constexpr uint32_t kRound = 1u << 31;  // the arrivals of a round add up to it
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const uint32_t before = atomicAdd(barrier, blockIdx.x == 0 ? kRound - (gridDim.x - 1) : 1u);
    const volatile uint32_t* const now = barrier;
    while (((before ^ *now) & kRound) == 0) __nanosleep(20);
    __threadfence();
  }
  __syncthreads();
}

template <class Body>
__global__ void __launch_bounds__(kThreads)
    phases_kernel(const __grid_constant__ Body body, int first, int end, uint32_t* barrier) {
  for (int phase = first; phase < end; ++phase) {
    if (phase > first) grid_barrier(barrier);
    body(phase);
  }
}

/// Calls body(phase), a functor with a __device__ call operator, for 0 <= phase < phases in all
/// threads of at most `most_blocks` blocks, as many as the GPU holds at once. One cooperative
/// launch; where it is refused, a launch for each phase. `barrier`: a zero in device memory, which
/// later calls may use again.
template <class Body>
void run_phases(const Context& ctx, const char* op, int phases, int64_t most_blocks,
                uint32_t* barrier, const Body& body) {
  constexpr int kMostPerProcessor = 2;  // more make the barriers slower
  void (*const kernel)(Body, int, int, uint32_t*) = phases_kernel<Body>;
  int device = 0, processors = 0, per_processor = 0;
  expect(cudaGetDevice(&device), op);
  expect(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), op);
  expect(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
             &per_processor, reinterpret_cast<const void*>(kernel), kThreads, 0),
         op);
  const int64_t held = int64_t{processors} * std::min(per_processor, kMostPerProcessor);
  const auto blocks = static_cast<unsigned>(std::max<int64_t>(1, std::min(most_blocks, held)));

  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = kThreads;
  config.stream = stream(ctx);
  config.attrs = &cooperative;
  config.numAttrs = 1;
  if (cudaLaunchKernelEx(&config, kernel, body, 0, phases, barrier) == cudaSuccess) return;
  cudaGetLastError();  // clears the refusal; any other error returns below
  for (int phase = 0; phase < phases; ++phase)
    launch(ctx, op, kernel, blocks, kThreads, body, phase, phase + 1, barrier);
}

}  // namespace tw::cuda
