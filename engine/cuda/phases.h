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

/// How many bodies a launch runs at once; they fit in the 4 KiB of kernel arguments.
inline constexpr size_t kMostBodies = 24;
template <class Body>
struct Bodies {
  Body each[kMostBodies];
  uint32_t count = 0;
  void add(const Body& body) { each[count++] = body; }
};

template <class Body>
__global__ void __launch_bounds__(kThreads)
    phases_kernel(const __grid_constant__ Bodies<Body> bodies, int first, int end) {
  const Body& body = bodies.each[blockIdx.y];
  for (int phase = first; phase < end; ++phase) {
    if (phase > first) grid_barrier(body.barrier());
    body(phase);
  }
}

/// Blocks for each of `bodies` bodies that a GPU holds at once, at least 1.
template <class Body>
int64_t resident_blocks(const char* op, uint32_t bodies) {
  constexpr int kMostPerProcessor = 2;  // more make the barriers slower
  int device = 0, processors = 0, per_processor = 0;
  expect(cudaGetDevice(&device), op);
  expect(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), op);
  expect(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
             &per_processor, reinterpret_cast<const void*>(phases_kernel<Body>), kThreads, 0),
         op);
  const int64_t held = int64_t{processors} * std::min(per_processor, kMostPerProcessor);
  return std::max<int64_t>(1, held / int64_t{bodies});
}

/// Calls body(phase), a functor with a __device__ call operator, for 0 <= phase < phases and each
/// body, in all threads of at most `blocks` blocks. With several phases these are no more than the
/// GPU holds at once, so that one cooperative launch runs all phases; where it is refused, each
/// phase has a launch. body.barrier(): a zero in device memory for each body, which later calls may
/// use again.
template <class Body>
void run_phases(const Context& ctx, const char* op, int phases, int64_t blocks,
                const Bodies<Body>& bodies) {
  void (*const kernel)(Bodies<Body>, int, int) = phases_kernel<Body>;
  static_assert(sizeof(Bodies<Body>) + 2 * sizeof(int) <= 4096);
  if (phases > 1) blocks = std::min(blocks, resident_blocks<Body>(op, bodies.count));
  const dim3 grid(static_cast<unsigned>(std::max<int64_t>(1, blocks)), bodies.count);
  // a single block needs no others to be held
  if (phases == 1 || grid.x == 1) return launch(ctx, op, kernel, grid, kThreads, bodies, 0, phases);

  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = kThreads;
  config.stream = stream(ctx);
  config.attrs = &cooperative;
  config.numAttrs = 1;
  if (cudaLaunchKernelEx(&config, kernel, bodies, 0, phases) == cudaSuccess) return;
  cudaGetLastError();  // clears the refusal; any other error returns below
  for (int phase = 0; phase < phases; ++phase)
    launch(ctx, op, kernel, grid, kThreads, bodies, phase, phase + 1);
}

/// Calls body(0) of `count` bodies, each divided among the threads of its blocks; `make` creates
/// body i, whose elements are body.n.
template <class Body, class Make>
void run_together(const Context& ctx, const char* op, size_t count, const Make& make) {
  Bodies<Body> bodies{};
  int64_t most = 0;
  for (size_t i = 0; i < count; ++i) {
    bodies.add(make(i));
    most = std::max(most, bodies.each[bodies.count - 1].n);
    if (bodies.count < kMostBodies && i + 1 < count) continue;
    if (most > 0) run_phases(ctx, op, 1, blocks_for(most), bodies);
    bodies.count = 0, most = 0;
  }
}

}  // namespace tw::cuda
