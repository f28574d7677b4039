// The passes of a radix search on a GPU. Each counts one digit of the matching magnitudes, and the
// last block to finish narrows the search. Counts are integers, so the order of blocks does not
// matter. Included by .cu files only.
#pragma once

#include <cub/block/block_scan.cuh>

#include "engine/cuda/column_sums.h"
#include "sparsify/kernels/bitmask_cuda.h"

namespace tw::cuda {

/// Narrows the search by the digit of `pass`. One block calls it when the counts of `pass` are
/// final.
__device__ inline void narrow(SearchMemory* memory, int pass) {
  using Scan = cub::BlockScan<uint32_t, kThreads>;
  __shared__ typename Scan::TempStorage shared;
  Search& search = memory->search;
  const uint32_t* const counts = memory->counts[pass];
  // thread 0 has the highest bins
  const int bins = RadixDigits::bins(pass), each = bins / kThreads;
  const int top = bins - 1 - static_cast<int>(threadIdx.x) * each;
  const uint32_t wanted = search.cut.wanted;
  uint32_t mine = 0, before = 0, total = 0;
  for (int b = 0; b < each; ++b) mine += __ldcg(&counts[top - b]);
  Scan(shared).ExclusiveSum(mine, before, total);

  const bool bad = __ldcg(&search.nonfinite) != Search::kNone;
  if (bad || total < wanted) {
    if (threadIdx.x > 0) return;
    // take nothing, or everything that is marked
    search.cut = bad ? RadixCut{.cut = ~0u, .wanted = 0} : RadixCut{.cut = 0, .wanted = ~0u};
    search.settled = 1;
    return;
  }
  if (before >= wanted || before + mine < wanted) return;
  int bin = top;
  for (; before + __ldcg(&counts[bin]) < wanted; --bin) before += __ldcg(&counts[bin]);
  search.cut.narrow(static_cast<uint32_t>(bin), before, pass);
}

/// Counts one digit. source.visit(f) calls f(i, magnitude bits) for each element of the source,
/// divided among all threads of the grid.
template <class Source>
__global__ void __launch_bounds__(kThreads)
    radix_kernel(Source source, int pass, uint32_t resolution, SearchMemory* memory,
                 uint32_t* tickets) {
  __shared__ uint32_t bins[RadixDigits::kMostBins];
  if (memory->search.settled) return;
  for (int b = static_cast<int>(threadIdx.x); b < RadixDigits::kMostBins; b += kThreads)
    bins[b] = 0;
  __syncthreads();
  const RadixCut cut = memory->search.cut;
  source.visit([&](int64_t i, uint32_t bits) {
    if (pass == 0 && bits >= kInfinityBits)
      atomicMin(&memory->search.nonfinite, static_cast<unsigned long long>(i));
    const uint32_t counted = bits & resolution;
    if (cut.matches(counted, pass)) atomicAdd(&bins[RadixDigits::digit(counted, pass)], 1u);
  });
  __syncthreads();
  for (int b = static_cast<int>(threadIdx.x); b < RadixDigits::bins(pass); b += kThreads)
    if (bins[b] > 0) atomicAdd(&memory->counts[pass][b], bins[b]);
  if (last_block_of_tile(tickets)) narrow(memory, pass);
}

/// Stores the cut of the search's `wanted` largest in memory->search. `work`: number of threads
/// that have elements to visit.
template <class Source>
void radix_search(Context& ctx, const Source& source, int64_t work, uint32_t resolution,
                  SearchMemory* memory) {
  constexpr int64_t kMostBlocks = 528;  // each leaves up to 2048 counts
  const auto blocks =
      static_cast<unsigned>(std::clamp<int64_t>((work + kThreads - 1) / kThreads, 1, kMostBlocks));
  uint32_t* const tickets = ctx.handles<CudaHandles>().tickets();
  for (int pass = 0; pass < RadixDigits::kPasses; ++pass) {
    if (RadixDigits::digit(resolution, pass) == 0) continue;  // this digit is 0 in all magnitudes
    launch(ctx, "select", radix_kernel<Source>, blocks, kThreads, source, pass, resolution, memory,
           tickets);
  }
}

}  // namespace tw::cuda
