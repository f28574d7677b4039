#include <cstring>

#include "sparsify/kernels/marked_vectors_cuda.h"

namespace tw::cuda {

namespace {

struct Begin {
  Search search;
  uint32_t least;
  __device__ uint32_t* barrier() const { return nullptr; }
  __device__ void operator()(int) const { search.begin(least); }
};

template <bool kAdd>
struct MarkPass {
  Marks marks;
  const float* g;
  Search::Found* found;
  Marks::Lower lower;

  __device__ uint32_t* barrier() const { return nullptr; }
  __device__ void operator()(int) const {
    __shared__ uint32_t totals[1 + Marks::Lower::kMost];
    if (threadIdx.x <= Marks::Lower::kMost) totals[threadIdx.x] = 0;
    __syncthreads();
    uint32_t reached = 0;
    if (grid_warp() < marks.chunks()) {
      const uint32_t marked = marks.mark<kAdd>(grid_warp(), g, found->least, lower, reached);
      if (lane() == 0) atomicAdd(&totals[0], marked);
      if (lane() < lower.count) atomicAdd(&totals[1 + lane()], reached);
    }
    __syncthreads();
    if (threadIdx.x == 0 && totals[0] > 0)
      atomicAdd(&found->marked, static_cast<unsigned long long>(totals[0]));
    if (static_cast<int>(threadIdx.x) < lower.count && totals[1 + threadIdx.x] > 0)
      atomicAdd(&found->lower[threadIdx.x],
                static_cast<unsigned long long>(totals[1 + threadIdx.x]));
  }
};

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
struct TakePass {
  Marks marks;
  Search search;
  MarkedVectors::Take take;
  int passes;
  TakenCounts* parts;  ///< of each warp of the grid
  uint32_t* indices;
  float* values;
  Search::Found* result;

  __device__ uint32_t* barrier() const { return &search.memory->barrier; }
  __device__ void operator()(int phase) const {
    if (phase == 0 && take.complete) complete();
    if (phase > passes + 1) return;  // another vector needs more phases
    if (phase > passes) return move(passes > 0 ? search.memory->before[passes].cut : take.cut);
    const Search::Progress now = search.advance(take.cut, phase);
    if (phase == passes)
      count(now.cut);
    else if (!now.settled)
      search.count_digits(marks, phase, take.resolution, now.cut);
  }

  /// Marks all non-zeros if too few are marked; rarely needed.
  __device__ void complete() const {
    if (search.found->marked >= take.cut.wanted || search.found->least <= 1) return;
    marks.for_own_chunks(1, [&](int64_t chunk, int64_t) {
      uint32_t reached = 0;
      marks.mark<false>(chunk, nullptr, 1, Marks::Lower{}, reached);
    });
    __syncwarp();
  }

  __device__ void count(const RadixCut& cut) const {
    TakenCounts mine;
    marks.visit([&](int64_t, float value, bool marked) {
      const uint32_t bits = magnitude_bits(value) & take.resolution;
      mine += {marked && bits > cut.cut, marked && bits == cut.cut};
    });
    mine = sum_of_lanes(mine);
    if (lane() == 0) parts[grid_warp()] = mine;
  }

  __device__ void move(const RadixCut& cut) const {
    TakenCounts before = sum_before();
    marks.visit([&](int64_t i, float value, bool marked) {
      const uint32_t bits = magnitude_bits(value) & take.resolution;
      const uint32_t above = __ballot_sync(~0u, marked && bits > cut.cut);
      const uint32_t equal = __ballot_sync(~0u, marked && bits == cut.cut);
      const TakenCounts here = before + TakenCounts{count_bits(above & lower_lanes()),
                                                    count_bits(equal & lower_lanes())};
      if (marked && cut.takes(bits, here.equal)) {
        const uint32_t at = cut.taken(here.above, here.equal);
        if (at < take.most) {
          indices[at] = take.base + static_cast<uint32_t>(i);
          values[at] = value;
        }
        marks.e[i] = 0;
      }
      before += {count_bits(above), count_bits(equal)};
    });
    if (grid_warp() + 1 < int64_t{gridDim.x} * kWarps || lane() > 0) return;
    *result = *search.found;
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

/// The number of passes until all digits of the resolution are known.
constexpr int passes_for(uint32_t resolution) {
  int passes = RadixDigits::kPasses;
  while (passes > 0 && RadixDigits::digit(resolution, passes - 1) == 0) --passes;
  return passes;
}

template <bool kAdd>
void run_marks(Context& ctx, const MarkedVectors& vectors,
               std::span<const MarkedVectors::Threshold> thresholds) {
  Bodies<MarkPass<kAdd>> bodies{};
  int64_t blocks = 0;
  for (const MarkedVectors::Threshold& each : thresholds) {
    const Marks& marks = vectors.marks(each.vector);
    blocks = std::max(blocks, marks.blocks());
    bodies.add({marks, each.g, vectors.search(each.vector).found, each.lower});
  }
  if (blocks > 0) run_phases(ctx, "select", 1, blocks, bodies);
}

}  // namespace

void MarkedVectors::refer_to(std::span<const std::span<float>> vectors) {
  check<std::logic_error>(vectors.size() <= kMostBodies, "[select] {} vectors", vectors.size());
  marks_.clear();
  int64_t chunks = 0;
  for (const std::span<float> e : vectors) {
    marks_.push_back({.n = std::ssize(e), .e = e.data()});
    chunks += marks_.back().chunks();
  }
  const auto all = static_cast<size_t>(chunks);
  counts_.grow(Device::cuda, all * sizeof(uint32_t));
  slots_.grow(Device::cuda, all * Marks::kSlot * sizeof(Marks::Entry));
  found_on_device_.grow(Device::cuda, vectors.size() * sizeof(Search::Found));
  memory_.grow(Device::cuda, vectors.size() * sizeof(Search::Memory));
  chunks = 0;
  for (Marks& marks : marks_) {
    marks.counts = counts_.as<uint32_t>().data() + chunks;
    marks.slots = slots_.as<Marks::Entry>().data() + chunks * Marks::kSlot;
    chunks += marks.chunks();
  }
}

void MarkedVectors::begin(Context& ctx, std::span<const Threshold> thresholds) {
  Bodies<Begin> bodies{};
  for (const Threshold& each : thresholds) bodies.add({search(each.vector), each.least});
  run_phases(ctx, "select", 1, 1, bodies);
}

void MarkedVectors::mark(Context& ctx, std::span<const Threshold> thresholds) {
  if (thresholds.front().g != nullptr)
    run_marks<true>(ctx, *this, thresholds);
  else
    run_marks<false>(ctx, *this, thresholds);
}

std::span<const Search::Found> MarkedVectors::found(Context& ctx) {
  auto& handles = ctx.handles<CudaHandles>();
  const size_t bytes = marks_.size() * sizeof(Search::Found);
  std::byte* const host = handles.pinned(bytes);
  expect(cudaMemcpyAsync(host, found_on_device_.data(), bytes, cudaMemcpyDefault, handles.stream()),
         "select");
  handles.synchronize();
  found_.resize(marks_.size());
  std::memcpy(found_.data(), host, bytes);
  return found_;
}

std::span<const Search::Found> MarkedVectors::take(Context& ctx, std::span<const Take> takes,
                                                   SparseVector& out) {
  // the results and the entries lie together, so that one copy transfers both
  const size_t head = (takes.size() * sizeof(Search::Found) + 63) / 64 * 64;
  constexpr size_t kEntry = sizeof(uint32_t) + sizeof(float);
  size_t bytes = head;
  int64_t blocks = 1;
  for (const Take& each : takes) {
    bytes += each.most * kEntry;
    blocks = std::max(blocks, marks_[each.vector].blocks());
  }
  if (moved_.empty() || moved_.back().bytes() < bytes)
    moved_.emplace_back(Device::cuda, bytes + bytes / 2);
  std::byte* const results = moved_.back().data();
  const size_t warps = static_cast<size_t>(blocks) * kWarps;
  parts_.grow(Device::cuda, takes.size() * warps * sizeof(TakenCounts));
  Bodies<TakePass> bodies{};
  int phases = 0;
  std::byte* entries = results + head;
  for (const Take& each : takes) {
    const int passes = each.search ? passes_for(each.resolution) : 0;
    phases = std::max(phases, passes + 2);
    auto* const indices = reinterpret_cast<uint32_t*>(entries);
    bodies.add({marks_[each.vector], search(each.vector), each, passes,
                parts_.as<TakenCounts>().data() + bodies.count * warps, indices,
                reinterpret_cast<float*>(indices + each.most),
                reinterpret_cast<Search::Found*>(results) + bodies.count});
    entries += each.most * kEntry;
  }
  run_phases(ctx, "select", phases, blocks, bodies);

  auto& handles = ctx.handles<CudaHandles>();
  std::byte* const host = handles.pinned(bytes);
  expect(cudaMemcpyAsync(host, results, bytes, cudaMemcpyDefault, handles.stream()), "select");
  handles.synchronize();
  found_.resize(takes.size());
  std::memcpy(found_.data(), host, takes.size() * sizeof(Search::Found));

  const std::byte* from = host + head;
  for (size_t i = 0; i < takes.size(); ++i) {
    const size_t moved = found_[i].moved, most = takes[i].most;
    check<Fault>(moved <= most, "[select] {} entries came where at most {} were expected", moved,
                 most);
    out.reserve(out.count + moved);
    const auto* const first = reinterpret_cast<const uint32_t*>(from);
    std::copy_n(first, moved, out.indices.begin() + static_cast<ptrdiff_t>(out.count));
    std::copy_n(reinterpret_cast<const float*>(first + most), moved,
                out.values.begin() + static_cast<ptrdiff_t>(out.count));
    out.count += moved;
    from += most * kEntry;
  }
  return found_;
}

}  // namespace tw::cuda
