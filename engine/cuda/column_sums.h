// Sums over the rows of a [rows, channels] matrix, for batch norm and bias gradients.
// Included by .cu files and headers *_cuda.h only.
//
// A block handles a tile of channels and a strided set of rows; a thread handles a pack of
// channels. Blocks write partial sums to scratch, and the last block of a tile adds them up in a
// fixed order. This takes one launch and gives the same bits in every run.
#pragma once

#include "engine/core/error.h"
#include "engine/core/tensor.h"
#include "engine/cuda/cuda_kernel.h"

namespace tw::cuda {

/// How rows and channels are divided among threads. Depends on the shape and the pack width only.
struct Columns {
  int64_t rows, channels;
  int wide;   ///< channels per thread
  int lanes;  ///< threads across the channels of a tile
  int down;   ///< threads down the rows of a block
  int tiles, blocks;

  Columns(int64_t row_count, int64_t channel_count, int pack_width)
      : rows(row_count), channels(channel_count), wide(pack_width) {
    constexpr int64_t kLanes = 32, kMostBlocks = 512, kRowsOfThread = 2;
    const int64_t packs = channels / wide;
    lanes = static_cast<int>(std::min(packs, kLanes));
    down = kThreads / lanes;
    tiles = static_cast<int>((packs + lanes - 1) / lanes);
    const int64_t wanted = (rows + down * kRowsOfThread - 1) / (down * kRowsOfThread);
    blocks =
        static_cast<int>(std::clamp<int64_t>(wanted, 1, std::max<int64_t>(8, kMostBlocks / tiles)));
    check(tiles <= CudaHandles::kTickets, "[columns] {} channels; at most {} on a GPU", channels,
          int64_t{CudaHandles::kTickets} * lanes * wide);
  }

  dim3 grid() const { return dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(tiles)); }
  /// Grid for kernels without sums: one block per `down` rows, at most 4 * `blocks`.
  dim3 grid_without_sums() const {
    const int64_t wanted = (rows + down - 1) / down;
    return dim3(static_cast<unsigned>(std::clamp<int64_t>(wanted, 1, 4 * int64_t{blocks})),
                static_cast<unsigned>(tiles));
  }
  /// Floats of scratch for `sums` sums per channel.
  size_t floats(int sums) const { return static_cast<size_t>(blocks) * sums * channels; }

  __device__ int lane() const { return static_cast<int>(threadIdx.x) % lanes; }
  __device__ int row_lane() const { return static_cast<int>(threadIdx.x) / lanes; }
  __device__ int64_t pack() const { return static_cast<int64_t>(blockIdx.y) * lanes + lane(); }
  /// Whether this thread has channels to process.
  __device__ bool active() const { return row_lane() < down && pack() * wide < channels; }
  __device__ int64_t first_row() const {
    return static_cast<int64_t>(blockIdx.x) * down + row_lane();
  }
  __device__ int64_t row_step() const { return static_cast<int64_t>(gridDim.x) * down; }
};

/// Floats of scratch that are enough for `sums` sums per channel, for every element type.
inline size_t column_floats(int64_t rows, int64_t channels, int sums) {
  size_t most = 0;
  for (const int wide : {1, 4, 8})
    if (channels % wide == 0) most = std::max(most, Columns(rows, channels, wide).floats(sums));
  return most;
}

/// True in all threads of the block that arrives last in its tile. That block sees what the other
/// blocks wrote.
__device__ inline bool last_block_of_tile(uint32_t* tickets) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  // the counter wraps to 0 at the last block, ready for the next kernel
  if (threadIdx.x == 0) last = atomicInc(&tickets[blockIdx.y], gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  __threadfence();
  return last;
}

/// Adds up the partial sums of this tile's blocks in double. Groups of blocks are added in
/// parallel.
template <int kSums, class Finish>
__device__ void total_columns(const Columns& g, const float* partial, const Finish& finish) {
  __shared__ double shared[kSums][kThreads];
  const int64_t begin = blockIdx.y * int64_t{g.lanes} * g.wide;
  const int width = static_cast<int>(min(g.channels - begin, int64_t{g.lanes} * g.wide));
  const int t = static_cast<int>(threadIdx.x), groups = kThreads / width, group = t / width;
  const int64_t c = begin + t % width;
  const int each = (g.blocks + groups - 1) / groups;
  double total[kSums] = {};
  if (group < groups) {
    constexpr int kInFlight = 8;  // partial sums that are loaded before the first is added
    const int end = min(g.blocks, (group + 1) * each);
    for (int first = group * each; first < end; first += kInFlight) {
      float parts[kInFlight][kSums];
#pragma unroll
      for (int b = 0; b < kInFlight; ++b)
        for (int s = 0; s < kSums && first + b < end; ++s)
          parts[b][s] = __ldcg(&partial[(int64_t{first + b} * kSums + s) * g.channels + c]);
#pragma unroll
      for (int b = 0; b < kInFlight; ++b)
        for (int s = 0; s < kSums && first + b < end; ++s) total[s] += parts[b][s];
    }
    for (int s = 0; s < kSums; ++s) shared[s][t] = total[s];
  }
  __syncthreads();
  if (group != 0) return;
  for (int other = 1; other < groups; ++other)
    for (int s = 0; s < kSums; ++s) total[s] += shared[s][t + other * width];
  finish(c, total);
}

/// Adds up the sums[kSums][kWide] of all threads over all rows. Calls finish(channel, total) once
/// per channel, with the kSums totals in double. `partial`: scratch of Columns::floats(kSums).
template <int kSums, int kWide, class Finish>
__device__ void reduce_columns(const Columns& g, const float (&sums)[kSums][kWide], float* partial,
                               uint32_t* tickets, const Finish& finish) {
  __shared__ float shared[kWide][kThreads];
  const int t = static_cast<int>(threadIdx.x), row = g.row_lane();
  for (int s = 0; s < kSums; ++s) {
    __syncthreads();
    for (int j = 0; j < kWide; ++j) shared[j][t] = g.active() ? sums[s][j] : 0.0f;
    for (int n = g.down; n > 1;) {
      const int half = (n + 1) / 2;
      __syncthreads();
      if (row < n - half)
        for (int j = 0; j < kWide; ++j) shared[j][t] += shared[j][t + half * g.lanes];
      n = half;
    }
    if (row == 0 && g.active()) {
      float* const mine = partial + (blockIdx.x * int64_t{kSums} + s) * g.channels;
      for (int j = 0; j < kWide; ++j) mine[g.pack() * kWide + j] = shared[j][t];
    }
  }
  if (last_block_of_tile(tickets)) total_columns<kSums>(g, partial, finish);
}

}  // namespace tw::cuda
