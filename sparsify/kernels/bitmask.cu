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

/// The numbers of marked entries above the cut and at the cut, in a tile or in several. The sum
/// over the tiles before a tile says where the tile's entries go in the output, and how many
/// entries at the cut have been taken before.
struct alignas(8) TileCounts {
  uint32_t above, equal;

  constexpr TileCounts operator+(const TileCounts& other) const {
    return {above + other.above, equal + other.equal};
  }
  constexpr TileCounts& operator+=(const TileCounts& other) { return *this = *this + other; }
  bool operator==(const TileCounts&) const = default;
};

/// The counts of this warp's words, in all its lanes.
__device__ TileCounts count_in_warp(const uint32_t* words, int64_t first, const float* e,
                                    uint32_t resolution, uint32_t cut) {
  uint32_t above = 0, equal = 0;
  visit_words(words, first, e, [&](int64_t, float value, bool marked) {
    const uint32_t bits = magnitude_bits(value) & resolution;
    above += marked && bits > cut;
    equal += marked && bits == cut;
  });
  return {__reduce_add_sync(~0u, above), __reduce_add_sync(~0u, equal)};
}

__device__ uint32_t count_bits(uint32_t x) { return static_cast<uint32_t>(__popc(x)); }

__device__ int64_t first_word() { return blockIdx.x * kTileWords + warp() * int64_t{kWarp}; }

__global__ void __launch_bounds__(kThreads)
    count_kernel(const uint32_t* words, const float* e, uint32_t resolution, const Search* search,
                 TileCounts* tiles) {
  __shared__ TileCounts warps[kWarps];
  const TileCounts mine = count_in_warp(words, first_word(), e, resolution, search->cut.cut);
  if (lane() == 0) warps[warp()] = mine;
  __syncthreads();
  if (threadIdx.x > 0) return;
  TileCounts total{};
  for (int w = 0; w < kWarps; ++w) total += warps[w];
  tiles[blockIdx.x] = total;
}

/// Turns the counts of n tiles into their starts; tiles[n] is the total. `result`: a copy of the
/// search.
constexpr int kScanThreads = 1024;
__global__ void __launch_bounds__(kScanThreads)
    scan_kernel(int64_t n, TileCounts* tiles, Search* search, Search* result) {
  using Scan = cub::BlockScan<TileCounts, kScanThreads>;
  __shared__ typename Scan::TempStorage memory;
  TileCounts before{};
  for (int64_t begin = 0; begin < n; begin += kScanThreads) {
    const int64_t i = begin + threadIdx.x;
    TileCounts value = i < n ? tiles[i] : TileCounts{}, total{};
    Scan(memory).ExclusiveSum(value, value, total);
    if (i < n) tiles[i] = before + value;
    before += total;
    __syncthreads();
  }
  if (threadIdx.x > 0) return;
  tiles[n] = before;
  search->moved = search->cut.taken(before.above, before.equal);
  *result = *search;
}

/// Moves the entries that the cut selects from e to indices and values, in index order, at most
/// `most` of them; e is zero there afterwards. `tiles`: the sums over the tiles before each tile.
__global__ void __launch_bounds__(kThreads)
    move_kernel(const uint32_t* words, float* e, uint32_t resolution, const Search* search,
                const TileCounts* tiles, uint32_t base, size_t most, uint32_t* indices,
                float* values) {
  const TileCounts start = tiles[blockIdx.x];
  if (start == tiles[blockIdx.x + 1]) return;
  __shared__ TileCounts warps[kWarps];
  const RadixCut cut = search->cut;
  const TileCounts mine = count_in_warp(words, first_word(), e, resolution, cut.cut);
  if (lane() == 0) warps[warp()] = mine;
  __syncthreads();
  TileCounts before = start;  // of the word that is visited
  for (int w = 0; w < warp(); ++w) before += warps[w];

  const uint32_t lower_lanes = (1u << lane()) - 1;
  visit_words(words, first_word(), e, [&](int64_t i, float value, bool marked) {
    const uint32_t bits = magnitude_bits(value) & resolution;
    const uint32_t above = __ballot_sync(~0u, marked && bits > cut.cut);
    const uint32_t equal = __ballot_sync(~0u, marked && bits == cut.cut);
    const TileCounts here =
        before + TileCounts{count_bits(above & lower_lanes), count_bits(equal & lower_lanes)};
    if (marked && cut.takes(bits, here.equal)) {
      const uint32_t at = cut.taken(here.above, here.equal);
      if (at < most) {
        indices[at] = base + static_cast<uint32_t>(i);
        values[at] = value;
      }
      e[i] = 0;
    }
    before += {count_bits(above), count_bits(equal)};
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
  grow(tiles_, (count + 1) * sizeof(TileCounts));
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
  auto& handles = ctx.handles<CudaHandles>();
  std::byte* const host = handles.pinned(sizeof(Search));
  expect(cudaMemcpyAsync(host, memory(), sizeof(Search), cudaMemcpyDefault, handles.stream()),
         "select");
  handles.synchronize();
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
  TileCounts* const starts = tiles_.as<TileCounts>().data();
  Search* const search = &memory()->search;
  launch(ctx, "select", count_kernel, blocks, kThreads, words(), e.data(), resolution, search,
         starts);
  launch(ctx, "select", scan_kernel, 1, kScanThreads, tiles(), starts, search, result);
  launch(ctx, "select", move_kernel, blocks, kThreads, words(), e.data(), resolution, search,
         starts, base, most, indices, values);

  auto& handles = ctx.handles<CudaHandles>();
  std::byte* const host = handles.pinned(bytes);
  expect(cudaMemcpyAsync(host, moved_.data(), bytes, cudaMemcpyDefault, handles.stream()),
         "select");
  handles.synchronize();
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
