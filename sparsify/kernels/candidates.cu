// Candidates on a GPU: one kernel marks them in the pass that adds, another takes from them.
#include "engine/core/copy.h"
#include "engine/cuda/phases.h"
#include "sparsify/kernels/candidates.h"
#include "sparsify/kernels/marked_vector_cuda.h"

namespace tw::cuda {

namespace {

template <bool kAdd>
__global__ void __launch_bounds__(kThreads)
    mark_kernel(Marks marks, const float* g, const __grid_constant__ Lower lower, Search* search) {
  __shared__ uint32_t totals[1 + Lower::kMost];
  if (threadIdx.x <= Lower::kMost) totals[threadIdx.x] = 0;
  __syncthreads();
  uint32_t reached = 0;
  if (grid_warp() < marks.chunks()) {
    const uint32_t marked = marks.mark<kAdd>(grid_warp(), g, search->least, lower, reached);
    if (lane() == 0) atomicAdd(&totals[0], marked);
    if (lane() < lower.count) atomicAdd(&totals[1 + lane()], reached);
  }
  __syncthreads();
  if (threadIdx.x == 0 && totals[0] > 0)
    atomicAdd(&search->marked, static_cast<unsigned long long>(totals[0]));
  if (static_cast<int>(threadIdx.x) < lower.count && totals[1 + threadIdx.x] > 0)
    atomicAdd(&search->lower[threadIdx.x],
              static_cast<unsigned long long>(totals[1 + threadIdx.x]));
}

/// The search of one block for a magnitude of its sample, in shared memory.
struct SampleSearch {
  static constexpr int kBins = 2048;
  using Scan = cub::BlockScan<uint32_t, kThreads>;

  typename Scan::TempStorage scan;
  uint32_t bins[kBins];
  uint32_t found;   ///< upper bits of the wanted magnitude, zeros below
  uint32_t wanted;  ///< its rank among the samples with these bits, from 1; the largest is 1
};

/// Magnitude bits of a thread's part of the sample.
struct OwnSamples {
  static constexpr int kEach = kSamples / kThreads;
  uint32_t bits[kEach];
  int count;  ///< how many are in the sample; the sample of a short vector is smaller
};

/// Extends search.found, which has the bits from `high` on, by the bits [low, high). A rank beyond
/// the number of samples changes nothing.
__device__ void histogram_round(SampleSearch& search, const OwnSamples& samples, int low,
                                int high) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int b = thread; b < SampleSearch::kBins; b += kThreads) search.bins[b] = 0;
  __syncthreads();
  const uint32_t found = search.found, wanted = search.wanted;
  const uint32_t digit_mask = (1u << (high - low)) - 1;
#pragma unroll
  for (int s = 0; s < OwnSamples::kEach; ++s) {
    const uint32_t bits = samples.bits[s];
    if (s < samples.count && bits >> high == found >> high)
      atomicAdd(&search.bins[bits >> low & digit_mask], 1u);
  }
  __syncthreads();
  constexpr int kOwn = SampleSearch::kBins / kThreads;
  const int top = SampleSearch::kBins - 1 - thread * kOwn;  // thread 0 has the highest bins
  uint32_t mine = 0, before = 0;
  for (int b = 0; b < kOwn; ++b) mine += search.bins[top - b];
  SampleSearch::Scan(search.scan).ExclusiveSum(mine, before);
  if (before < wanted && before + mine >= wanted) {
    int bin = top;
    for (; before + search.bins[bin] < wanted; --bin) before += search.bins[bin];
    search.found = found | static_cast<uint32_t>(bin) << low;
    search.wanted = wanted - before;
  }
  __syncthreads();
}

/// Begins a selection: the least magnitude to mark is the bin edge of the sample's `rank`-th
/// largest. A rank beyond the sample gives the least bin. Launched with one block.
__global__ void __launch_bounds__(kThreads)
    sample_kernel(int64_t n, const float* g, const float* e, uint32_t rank, SearchMemory* memory) {
  __shared__ SampleSearch shared;
  const int thread = static_cast<int>(threadIdx.x);
  const int size = static_cast<int>(min(n, int64_t{kSamples}));
  OwnSamples samples;
  samples.count = (size - thread + kThreads - 1) / kThreads;
#pragma unroll
  for (int s = 0; s < OwnSamples::kEach; ++s) {
    const size_t at = s < samples.count ? sample_position(s * kThreads + thread, n) : 0;
    samples.bits[s] = magnitude_bits(g != nullptr ? e[at] + g[at] : e[at]);
  }
  if (thread == 0) shared.found = 0, shared.wanted = rank;

  // 11 bits, then the rest down to a bin's edge; a magnitude has 31 bits
  constexpr int kMiddle = 20;
  histogram_round(shared, samples, kMiddle, 31);
  histogram_round(shared, samples, LogHistogram::kShift, kMiddle);
  memory->begin(candidate_bits(shared.found));
}

__global__ void __launch_bounds__(kThreads)
    reaching_kernel(Marks marks, uint32_t bits, unsigned long long* total) {
  uint32_t mine = 0;
  marks.visit(
      [&](int64_t, float value, bool marked) { mine += marked && magnitude_bits(value) >= bits; });
  mine = __reduce_add_sync(~0u, mine);
  if (lane() == 0 && mine > 0) atomicAdd(total, static_cast<unsigned long long>(mine));
}

/// Finds the cut of the nth largest magnitude of a sample.
struct NthMagnitude {
  const float *g, *e;
  int64_t stride, count;
  RadixCut nth;
  SearchMemory* memory;

  __device__ void operator()(int phase) const {
    const SearchProgress now = memory->advance(nth, phase);
    if (phase == RadixDigits::kPasses) {
      if (first_index() == 0) memory->search.cut = now.cut;
    } else if (!now.settled) {
      memory->count_digits(*this, phase, ~0u, now.cut);
    }
  }
  template <class Visit>
  __device__ void visit(const Visit& body) const {
    for (int64_t i = first_index(); i < count; i += index_step())
      body(i, g[i * stride] + e[i * stride], true);
  }
};

uint32_t limited(size_t wanted) {
  return static_cast<uint32_t>(std::min<size_t>(wanted, UINT32_MAX));
}

class DeviceCandidates : public Candidates {
 public:
  uint32_t nth_magnitude(Context& ctx, const StridedSum& sample, size_t nth) override {
    vector_.begin(ctx, {}, 1);
    const auto count = static_cast<int64_t>(sample.size());
    run_phases(ctx, "select", RadixDigits::kPasses + 1, (count + kThreads - 1) / kThreads,
               &vector_.memory()->barrier,
               NthMagnitude{sample.g.data() + sample.first, sample.e.data() + sample.first,
                            static_cast<int64_t>(sample.stride), count,
                            RadixCut{.cut = 0, .wanted = limited(nth)}, vector_.memory()});
    return vector_.found(ctx).cut.cut;
  }

  void collect(Context& ctx, std::span<const float> g, std::span<float> e, uint32_t min_bits,
               std::span<const uint32_t> lower) override {
    check<std::logic_error>(lower.size() <= Lower::kMost, "[candidates] {} thresholds",
                            lower.size());
    start(ctx, min_bits, 0);
    lower_.count = static_cast<int>(lower.size());
    std::ranges::copy(lower, lower_.bits);
    vector_.begin(ctx, e, min_bits);
    mark(ctx, g);
  }

  void collect_largest(Context& ctx, std::span<const float> g, std::span<float> e,
                       size_t k) override {
    start(ctx, 1, k);
    vector_.refer_to(e);
    if (e.empty()) return;
    launch(ctx, "select", sample_kernel, 1, kThreads, std::ssize(e), data(g), e.data(),
           static_cast<uint32_t>(sample_rank(k, e.size())), vector_.memory());
    mark(ctx, g);
  }

  void widen(Context& ctx, std::span<float> e, uint32_t bits) override {
    if (bits < min_bits_) collect(ctx, {}, e, bits, {});
  }

  size_t count() override { return found().marked; }

  size_t reaching(uint32_t bits) override {
    if (bits == min_bits_) return found().marked;
    for (int l = 0; l < lower_.count; ++l)
      if (lower_.bits[l] == bits) return found().lower[l];
    check<std::logic_error>(bits >= min_bits_, "[candidates] {:#x} was not counted", bits);
    Context& ctx = *ctx_;
    Search* const search = &vector_.memory()->search;
    expect(cudaMemsetAsync(&search->moved, 0, sizeof search->moved, stream(ctx)), "select");
    const auto blocks =
        static_cast<unsigned>(std::clamp<int64_t>(vector_.marks().blocks(), 1, kMaxBlocks));
    launch(ctx, "select", reaching_kernel, blocks, kThreads, vector_.marks(), bits, &search->moved);
    return vector_.found(ctx).moved;
  }

  SelectInfo take_largest(Context& ctx, size_t k, uint32_t resolution, std::span<float> e,
                          uint32_t base, SparseVector& out) override {
    const Choice choice{.cut = {.cut = 0, .wanted = limited(k)},
                        .resolution = resolution,
                        .search = true,
                        .complete = k <= complete_};
    const Search found = vector_.take(ctx, choice, std::min(k, e.size()), base, out);
    if (found.nonfinite == Search::kNone) return {.threshold = std::bit_cast<float>(found.cut.cut)};
    return {.nonfinite = found.nonfinite, .nonfinite_value = value_at(ctx, &e[found.nonfinite])};
  }

  void take(Context& ctx, uint32_t bits, std::span<float>, uint32_t base,
            SparseVector& out) override {
    const size_t most = reaching(bits);
    vector_.take(ctx, {.cut = {.cut = bits - 1, .wanted = 0}}, most, base, out);
  }

 private:
  static const float* data(std::span<const float> g) { return g.empty() ? nullptr : g.data(); }

  void start(Context& ctx, uint32_t min_bits, size_t complete) {
    ctx_ = &ctx;
    min_bits_ = min_bits;
    complete_ = complete;
    lower_ = {};
    known_ = false;
  }

  void mark(Context& ctx, std::span<const float> g) {
    const Marks& marks = vector_.marks();
    if (marks.n == 0) return;
    const auto kernel = g.empty() ? mark_kernel<false> : mark_kernel<true>;
    launch(ctx, "select", kernel, static_cast<unsigned>(marks.blocks()), kThreads, marks, data(g),
           lower_, &vector_.memory()->search);
  }

  /// Counts of the last collection; the first call waits for the device.
  const Search& found() {
    if (!known_) found_ = vector_.found(*ctx_);
    known_ = true;
    return found_;
  }

  MarkedVector vector_;
  Context* ctx_ = nullptr;
  uint32_t min_bits_ = 0;
  size_t complete_ = 0;  // how many of the largest are kept for sure, whatever min_bits_ is
  Lower lower_;
  bool known_ = false;
  Search found_{};
};

const bool candidates_registered = candidates_dispatch.add(
    Device::cuda,
    []() -> std::unique_ptr<Candidates> { return std::make_unique<DeviceCandidates>(); });

}  // namespace
}  // namespace tw::cuda
