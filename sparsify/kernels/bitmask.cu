#include <cstring>
#include <cub/block/block_scan.cuh>

#include "sparsify/kernels/bitmask_cuda.h"

namespace tw::cuda {

namespace {

__global__ void begin_kernel(Search* search, uint32_t least, uint32_t wanted) {
  *search = {.least = least,
             .settled = 0,
             .cut = {.cut = 0, .wanted = wanted},
             .marked = 0,
             .lower = {},
             .nonfinite = Search::kNone,
             .moved = 0};
}

__global__ void __launch_bounds__(kThreads)
    begin_search_kernel(SearchMemory* memory, uint32_t wanted) {
  uint32_t* const counts = &memory->counts[0][0];
  constexpr int all = RadixDigits::kPasses * RadixDigits::kMostBins;
  for (int i = static_cast<int>(threadIdx.x); i < all; i += kThreads) counts[i] = 0;
  if (threadIdx.x > 0) return;
  memory->search.cut = {.cut = 0, .wanted = wanted};
  memory->search.settled = 0;
  memory->search.nonfinite = Search::kNone;
}

__global__ void set_cut_kernel(Search* search, RadixCut cut) { search->cut = cut; }

/// Marked entries above the cut and at it, in one word: both counts are below 2^32.
using Kept = unsigned long long;
__host__ __device__ constexpr Kept kept(uint32_t above, uint32_t equal) {
  return Kept{above} << 32 | equal;
}

/// The counts of this warp's words, in all its lanes.
__device__ Kept kept_by_warp(const uint32_t* words, int64_t first, const float* e,
                             uint32_t resolution, uint32_t cut) {
  uint32_t above = 0, equal = 0;
  visit_words(words, first, e, [&](int64_t, float value, bool marked) {
    const uint32_t bits = magnitude_bits(value) & resolution;
    above += marked && bits > cut;
    equal += marked && bits == cut;
  });
  return kept(__reduce_add_sync(~0u, above), __reduce_add_sync(~0u, equal));
}

__device__ int64_t first_word() { return blockIdx.x * kTileWords + warp() * int64_t{kWarp}; }

__global__ void __launch_bounds__(kThreads)
    count_kernel(const uint32_t* words, const float* e, uint32_t resolution, const Search* search,
                 Kept* tiles) {
  __shared__ Kept warps[kWarps];
  const Kept mine = kept_by_warp(words, first_word(), e, resolution, search->cut.cut);
  if (lane() == 0) warps[warp()] = mine;
  __syncthreads();
  if (threadIdx.x > 0) return;
  Kept total = 0;
  for (int w = 0; w < kWarps; ++w) total += warps[w];
  tiles[blockIdx.x] = total;
}

/// Turns the counts of the tiles into the starts of their entries, the totals last. `result`: a
/// copy of the search.
constexpr int kScanThreads = 1024;
__global__ void __launch_bounds__(kScanThreads)
    scan_kernel(int64_t n, Kept* tiles, Search* search, Search* result) {
  using Scan = cub::BlockScan<Kept, kScanThreads>;
  __shared__ typename Scan::TempStorage memory;
  Kept before = 0;
  for (int64_t begin = 0; begin < n; begin += kScanThreads) {
    const int64_t i = begin + threadIdx.x;
    Kept value = i < n ? tiles[i] : 0, total = 0;
    Scan(memory).ExclusiveSum(value, value, total);
    if (i < n) tiles[i] = before + value;
    before += total;
    __syncthreads();
  }
  if (threadIdx.x > 0) return;
  tiles[n] = before;
  search->moved =
      search->cut.taken(static_cast<uint32_t>(before >> 32), static_cast<uint32_t>(before));
  *result = *search;
}

__global__ void __launch_bounds__(kThreads)
    move_kernel(const uint32_t* words, float* e, uint32_t resolution, const Search* search,
                const Kept* tiles, uint32_t base, size_t most, uint32_t* indices, float* values) {
  const Kept begin = tiles[blockIdx.x];
  if (begin == tiles[blockIdx.x + 1]) return;
  __shared__ Kept warps[kWarps];
  const RadixCut cut = search->cut;
  const Kept mine = kept_by_warp(words, first_word(), e, resolution, cut.cut);
  if (lane() == 0) warps[warp()] = mine;
  __syncthreads();
  Kept before = begin;
  for (int w = 0; w < warp(); ++w) before += warps[w];

  uint32_t above = static_cast<uint32_t>(before >> 32), equal = static_cast<uint32_t>(before);
  const uint32_t lower_lanes = (1u << lane()) - 1;
  visit_words(words, first_word(), e, [&](int64_t i, float value, bool marked) {
    const uint32_t bits = magnitude_bits(value) & resolution;
    const uint32_t above_here = __ballot_sync(~0u, marked && bits > cut.cut);
    const uint32_t equal_here = __ballot_sync(~0u, marked && bits == cut.cut);
    const uint32_t equal_before = equal + __popc(equal_here & lower_lanes);
    if (marked && cut.takes(bits, equal_before)) {
      const uint32_t at = cut.taken(above + __popc(above_here & lower_lanes), equal_before);
      if (at < most) {
        indices[at] = base + static_cast<uint32_t>(i);
        values[at] = value;
      }
      e[i] = 0;
    }
    above += __popc(above_here);
    equal += __popc(equal_here);
  });
}

void grow(Buffer& buffer, size_t bytes) {
  if (buffer.bytes() < bytes) buffer = Buffer(Device::cuda, bytes);
}

uint32_t limited(size_t wanted) {
  return static_cast<uint32_t>(std::min<size_t>(wanted, UINT32_MAX));
}

}  // namespace

void Bitmask::begin(Context& ctx, size_t n, uint32_t least, size_t wanted) {
  n_ = static_cast<int64_t>(n);
  const size_t count = static_cast<size_t>(tiles());
  grow(words_, count * kTileWords * sizeof(uint32_t));
  grow(tiles_, (count + 1) * sizeof(Kept));
  grow(search_, sizeof(SearchMemory));
  launch(ctx, "select", begin_kernel, 1, 1, &memory()->search, least, limited(wanted));
}

void Bitmask::begin_search(Context& ctx, size_t wanted) {
  launch(ctx, "select", begin_search_kernel, 1, kThreads, memory(), limited(wanted));
}

void Bitmask::set_cut(Context& ctx, RadixCut cut) {
  launch(ctx, "select", set_cut_kernel, 1, 1, &memory()->search, cut);
}

Search Bitmask::found(Context& ctx) const {
  auto& native = ctx.handles<CudaHandles>();
  std::byte* const host = native.pinned(sizeof(Search));
  expect(cudaMemcpyAsync(host, memory(), sizeof(Search), cudaMemcpyDefault, native.stream()),
         "select");
  native.synchronize();
  Search result;
  std::memcpy(&result, host, sizeof result);
  return result;
}

Search Bitmask::take(Context& ctx, uint32_t resolution, size_t most, std::span<float> e,
                     uint32_t base, SparseVector& out) {
  const auto blocks = static_cast<unsigned>(tiles());
  if (blocks == 0) return found(ctx);
  // the search and the entries lie together, so that one copy transfers both
  constexpr size_t head = (sizeof(Search) + 63) / 64 * 64;
  const size_t bytes = head + most * (sizeof(uint32_t) + sizeof(float));
  if (moved_.bytes() < bytes) moved_ = Buffer(Device::cuda, bytes + bytes / 2);
  auto* const result = reinterpret_cast<Search*>(moved_.data());
  auto* const indices = reinterpret_cast<uint32_t*>(moved_.data() + head);
  auto* const values = reinterpret_cast<float*>(indices + most);
  Kept* const starts = tiles_.as<Kept>().data();
  Search* const search = &memory()->search;
  launch(ctx, "select", count_kernel, blocks, kThreads, words(), e.data(), resolution, search,
         starts);
  launch(ctx, "select", scan_kernel, 1, kScanThreads, tiles(), starts, search, result);
  launch(ctx, "select", move_kernel, blocks, kThreads, words(), e.data(), resolution, search,
         starts, base, most, indices, values);

  auto& native = ctx.handles<CudaHandles>();
  std::byte* const host = native.pinned(bytes);
  expect(cudaMemcpyAsync(host, moved_.data(), bytes, cudaMemcpyDefault, native.stream()), "select");
  native.synchronize();
  Search found;
  std::memcpy(&found, host, sizeof found);

  check<Fault>(found.moved <= most, "[select] {} entries came where at most {} were expected",
               found.moved, most);
  out.reserve(out.count + found.moved);
  const auto* const first = reinterpret_cast<const uint32_t*>(host + head);
  std::copy_n(first, found.moved, out.indices.begin() + static_cast<ptrdiff_t>(out.count));
  std::copy_n(reinterpret_cast<const float*>(first + most), found.moved,
              out.values.begin() + static_cast<ptrdiff_t>(out.count));
  out.count += found.moved;
  return found;
}

}  // namespace tw::cuda
