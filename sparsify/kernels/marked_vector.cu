#include <cstring>

#include "engine/cuda/phases.h"
#include "sparsify/kernels/marked_vector_cuda.h"

namespace tw::cuda {

namespace {

__global__ void __launch_bounds__(kThreads) begin_kernel(SearchMemory* memory, uint32_t least) {
  memory->begin(least);
}

/// The numbers of marked elements above the cut and at the cut, in one or several warps. The sum
/// over the warps before a warp says where its entries go in the output, and how many elements at
/// the cut have been taken before.
struct alignas(8) TakenCounts {
  uint32_t above = 0, equal = 0;

  constexpr TakenCounts operator+(const TakenCounts& other) const {
    return {above + other.above, equal + other.equal};
  }
  constexpr TakenCounts& operator+=(const TakenCounts& other) { return *this = *this + other; }
};

__device__ TakenCounts sum_of_lanes(const TakenCounts& x) {
  return {__reduce_add_sync(~0u, x.above), __reduce_add_sync(~0u, x.equal)};
}

/// Finds the cut in `passes` phases, counts the elements to take in the next and moves them in the
/// last.
struct Take {
  Marks marks;
  SearchMemory* memory;
  Choice choice;
  int passes;
  TakenCounts* parts;  ///< of each warp of the grid
  uint32_t base;
  size_t most;
  uint32_t* indices;
  float* values;
  Search* result;

  __device__ void operator()(int phase) const {
    if (phase == 0 && choice.complete) complete();
    if (phase > passes) return move(passes > 0 ? memory->before[passes].cut : choice.cut);
    const SearchProgress now = memory->advance(choice.cut, phase);
    if (phase == passes)
      count(now.cut);
    else if (!now.settled)
      memory->count_digits(marks, phase, choice.resolution, now.cut);
  }

  /// Marks all non-zeros if too few are marked; rarely needed.
  __device__ void complete() const {
    if (memory->search.marked >= choice.cut.wanted || memory->search.least <= 1) return;
    marks.for_own_chunks(1, [&](int64_t chunk, int64_t) {
      uint32_t reached = 0;
      marks.mark<false>(chunk, nullptr, 1, Lower{}, reached);
    });
    __syncwarp();
  }

  __device__ void count(const RadixCut& cut) const {
    TakenCounts mine;
    marks.visit([&](int64_t, float value, bool marked) {
      const uint32_t bits = magnitude_bits(value) & choice.resolution;
      mine += {marked && bits > cut.cut, marked && bits == cut.cut};
    });
    mine = sum_of_lanes(mine);
    if (lane() == 0) parts[grid_warp()] = mine;
  }

  __device__ void move(const RadixCut& cut) const {
    TakenCounts before = sum_before();
    marks.visit([&](int64_t i, float value, bool marked) {
      const uint32_t bits = magnitude_bits(value) & choice.resolution;
      const uint32_t above = __ballot_sync(~0u, marked && bits > cut.cut);
      const uint32_t equal = __ballot_sync(~0u, marked && bits == cut.cut);
      const TakenCounts here = before + TakenCounts{count_bits(above & lower_lanes()),
                                                    count_bits(equal & lower_lanes())};
      if (marked && cut.takes(bits, here.equal)) {
        const uint32_t at = cut.taken(here.above, here.equal);
        if (at < most) {
          indices[at] = base + static_cast<uint32_t>(i);
          values[at] = value;
        }
        marks.e[i] = 0;
      }
      before += {count_bits(above), count_bits(equal)};
    });
    if (grid_warp() + 1 < int64_t{gridDim.x} * kWarps || lane() > 0) return;
    *result = memory->search;
    result->cut = cut;
    result->moved = cut.taken(before.above, before.equal);
  }

  /// The sum over the warps before this one.
  __device__ TakenCounts sum_before() const {
    __shared__ TakenCounts warps[kWarps];
    const auto blocks_before = static_cast<int>(blockIdx.x) * kWarps;
    TakenCounts mine;
    for (int w = static_cast<int>(threadIdx.x); w < blocks_before; w += kThreads) mine += parts[w];
    mine = sum_of_lanes(mine);
    if (lane() == 0) warps[warp()] = mine;
    __syncthreads();
    TakenCounts before;
    for (int w = 0; w < kWarps; ++w) before += warps[w];
    for (int w = 0; w < warp(); ++w) before += parts[blocks_before + w];
    return before;
  }
};

void grow(Buffer& buffer, size_t bytes) {
  if (buffer.bytes() < bytes) buffer = Buffer(Device::cuda, bytes);
}

/// The number of passes until all digits of the resolution are known.
constexpr int passes_for(uint32_t resolution) {
  int passes = RadixDigits::kPasses;
  while (passes > 0 && RadixDigits::digit(resolution, passes - 1) == 0) --passes;
  return passes;
}

}  // namespace

void MarkedVector::refer_to(std::span<float> e) {
  marks_ = {.n = std::ssize(e), .e = e.data()};
  const auto chunks = static_cast<size_t>(marks_.chunks());
  grow(counts_, chunks * sizeof(uint32_t));
  grow(slots_, chunks * Marks::kSlot * sizeof(Entry));
  grow(memory_, sizeof(SearchMemory));
  marks_.counts = counts_.as<uint32_t>().data();
  marks_.slots = slots_.as<Entry>().data();
}

void MarkedVector::begin(Context& ctx, std::span<float> e, uint32_t least) {
  refer_to(e);
  launch(ctx, "select", begin_kernel, 1, kThreads, memory(), least);
}

Search MarkedVector::found(Context& ctx) const {
  auto& handles = ctx.handles<CudaHandles>();
  std::byte* const host = handles.pinned(sizeof(Search));
  expect(cudaMemcpyAsync(host, memory(), sizeof(Search), cudaMemcpyDefault, handles.stream()),
         "select");
  handles.synchronize();
  Search result;
  std::memcpy(&result, host, sizeof result);
  return result;
}

Search MarkedVector::take(Context& ctx, const Choice& choice, size_t most, uint32_t base,
                          SparseVector& out) {
  if (marks_.n == 0) return {};
  // the results and the entries lie together, so that one copy transfers both
  constexpr size_t head = (sizeof(Search) + 63) / 64 * 64;
  const size_t bytes = head + most * (sizeof(uint32_t) + sizeof(float));
  if (moved_.bytes() < bytes) moved_ = Buffer(Device::cuda, bytes + bytes / 2);
  auto* const indices = reinterpret_cast<uint32_t*>(moved_.data() + head);
  grow(parts_, static_cast<size_t>(marks_.blocks()) * kWarps * sizeof(TakenCounts));
  const int passes = choice.search ? passes_for(choice.resolution) : 0;
  run_phases(
      ctx, "select", passes + 2, marks_.blocks(), &memory()->barrier,
      Take{marks_, memory(), choice, passes, parts_.as<TakenCounts>().data(), base, most, indices,
           reinterpret_cast<float*>(indices + most), reinterpret_cast<Search*>(moved_.data())});

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
