// Candidates on a GPU are a bitmask. Writing one bit per element costs 1/32 of reading the vector,
// needs no guess of their number, and keeps them in order without a scan.
#include "engine/core/copy.h"
#include "sparsify/kernels/candidates.h"
#include "sparsify/kernels/radix_select_cuda.h"

namespace tw::cuda {

namespace {

/// Other magnitudes whose entries are counted in the same pass.
struct Lower {
  int count = 0;
  uint32_t bits[Search::kMostLower] = {};
};

/// Computes this block's tile of the bitmask and returns this thread's word. `reached`: in lane l,
/// the number of this warp's elements that reach lower.bits[l].
template <bool kAdd>
__device__ uint32_t mark_tile(int64_t n, const float* g, float* e, uint32_t least,
                              const Lower& lower, uint32_t& reached) {
  constexpr int kBatch = 8;  // loads in flight
  const int64_t first = blockIdx.x * kTileElements + warp() * int64_t{kWarp * 32} + lane();
  uint32_t word = 0;
  for (int j = 0; j < kWarp; j += kBatch) {
    float u[kBatch], more[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int64_t i = first + (j + b) * 32;
      u[b] = i < n ? e[i] : 0.0f;
      more[b] = kAdd && i < n ? g[i] : 0.0f;
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int64_t i = first + (j + b) * 32;
      if (kAdd) u[b] += more[b];
      if (kAdd && i < n) e[i] = u[b];
      const uint32_t bits = magnitude_bits(u[b]);
      const uint32_t marks = __ballot_sync(~0u, i < n && bits >= least);
      if (lane() == j + b) word = marks;
      for (int l = 0; l < lower.count; ++l) {
        const uint32_t there = __ballot_sync(~0u, i < n && bits >= lower.bits[l]);
        if (lane() == l) reached += __popc(there);
      }
    }
  }
  return word;
}

template <bool kAdd>
__global__ void __launch_bounds__(kThreads)
    mark_kernel(int64_t n, const float* g, float* e, Lower lower, uint32_t* words, Search* search) {
  __shared__ uint32_t totals[1 + Search::kMostLower];
  if (threadIdx.x <= Search::kMostLower) totals[threadIdx.x] = 0;
  __syncthreads();
  uint32_t reached = 0;
  const uint32_t word = mark_tile<kAdd>(n, g, e, search->least, lower, reached);
  words[blockIdx.x * kTileWords + threadIdx.x] = word;
  const uint32_t marked = __reduce_add_sync(~0u, __popc(word));
  if (lane() == 0) atomicAdd(&totals[0], marked);
  if (lane() < lower.count) atomicAdd(&totals[1 + lane()], reached);
  __syncthreads();
  if (threadIdx.x == 0 && totals[0] > 0)
    atomicAdd(&search->marked, static_cast<unsigned long long>(totals[0]));
  if (static_cast<int>(threadIdx.x) < lower.count && totals[1 + threadIdx.x] > 0)
    atomicAdd(&search->lower[threadIdx.x],
              static_cast<unsigned long long>(totals[1 + threadIdx.x]));
}

/// Marks all non-zero elements if the sampled threshold kept too few; rarely needed.
__global__ void __launch_bounds__(kThreads)
    mark_all_kernel(int64_t n, float* e, uint32_t* words, const Search* search) {
  if (search->marked >= search->cut.wanted || search->least <= 1) return;
  uint32_t reached = 0;
  words[blockIdx.x * kTileWords + threadIdx.x] =
      mark_tile<false>(n, nullptr, e, 1, Lower{}, reached);
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

/// Leaves the bin edge of the sample's `rank`-th largest in search->least. A rank beyond the sample
/// gives the least bin. Launched with one block.
__global__ void __launch_bounds__(kThreads)
    sample_kernel(int64_t n, const float* g, const float* e, uint32_t rank, Search* search) {
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
  if (thread == 0) search->least = candidate_bits(shared.found);
}

struct MarkedValues {
  const uint32_t* words;
  const float* e;
  int64_t count;  ///< words, whole tiles

  template <class Visit>
  __device__ void visit(const Visit& body) const {
    const int64_t step = gridDim.x * int64_t{kThreads};
    for (int64_t first = (blockIdx.x * int64_t{kWarps} + warp()) * kWarp; first < count;
         first += step)
      visit_words(words, first, e, [&](int64_t i, float value, bool marked) {
        if (marked) body(i, magnitude_bits(value));
      });
  }
};

__global__ void __launch_bounds__(kThreads)
    reaching_kernel(MarkedValues values, uint32_t bits, unsigned long long* total) {
  uint32_t mine = 0;
  values.visit([&](int64_t, uint32_t magnitude) { mine += magnitude >= bits; });
  mine = __reduce_add_sync(~0u, mine);
  if (lane() == 0 && mine > 0) atomicAdd(total, static_cast<unsigned long long>(mine));
}

struct StridedMagnitudes {
  const float *g, *e;
  int64_t stride, count;

  template <class Visit>
  __device__ void visit(const Visit& body) const {
    for (int64_t i = first_index(); i < count; i += index_step())
      body(i, magnitude_bits(g[i * stride] + e[i * stride]));
  }
};

class DeviceCandidates : public Candidates {
 public:
  uint32_t nth_magnitude(Context& ctx, const StridedSum& sample, size_t nth) override {
    marks_.begin(ctx, 0, 1, 0);
    marks_.begin_search(ctx, nth);
    const auto count = static_cast<int64_t>(sample.size());
    const StridedMagnitudes magnitudes{sample.g.data() + sample.first,
                                       sample.e.data() + sample.first,
                                       static_cast<int64_t>(sample.stride), count};
    radix_search(ctx, magnitudes, count, ~0u, marks_.memory());
    return marks_.found(ctx).cut.cut;
  }

  void collect(Context& ctx, std::span<const float> g, std::span<float> e, uint32_t min_bits,
               std::span<const uint32_t> lower) override {
    check<std::logic_error>(lower.size() <= Search::kMostLower, "[candidates] {} thresholds",
                            lower.size());
    Lower also{.count = static_cast<int>(lower.size())};
    std::ranges::copy(lower, also.bits);
    start(ctx, e, min_bits, 0);
    lower_ = also;
    mark(ctx, g, e, also);
  }

  void collect_largest(Context& ctx, std::span<const float> g, std::span<float> e,
                       size_t k) override {
    start(ctx, e, 1, k);
    lower_ = {};
    if (e.empty()) return;
    const auto rank = static_cast<uint32_t>(sample_rank(k, e.size()));
    launch(ctx, "select", sample_kernel, 1, kThreads, marks_.size(), data(g), e.data(), rank,
           &marks_.memory()->search);
    mark(ctx, g, e, {});
    launch(ctx, "select", mark_all_kernel, blocks(), kThreads, marks_.size(), e.data(),
           marks_.words(), &marks_.memory()->search);
  }

  void widen(Context& ctx, std::span<float> e, uint32_t bits) override {
    if (bits < min_bits_) collect(ctx, {}, e, bits, {});
  }

  size_t count() override { return found().marked; }

  size_t reaching(uint32_t bits) override {
    for (int l = 0; l < lower_.count; ++l)
      if (lower_.bits[l] == bits) return found().lower[l];
    check<std::logic_error>(bits >= min_bits_, "[candidates] {:#x} was not counted", bits);
    Context& ctx = *ctx_;
    Search* const search = &marks_.memory()->search;
    expect(cudaMemsetAsync(&search->moved, 0, sizeof search->moved, stream(ctx)), "select");
    launch(ctx, "select", reaching_kernel, scan_blocks(), kThreads, values(), bits, &search->moved);
    return marks_.found(ctx).moved;
  }

  SelectInfo take_largest(Context& ctx, size_t k, uint32_t resolution, std::span<float> e,
                          uint32_t base, SparseVector& out) override {
    marks_.begin_search(ctx, k);
    radix_search(ctx, values(), marks_.tiles() * kTileWords, resolution, marks_.memory());
    const Search found = marks_.take(ctx, resolution, std::min(k, e.size()), e, base, out);
    if (found.nonfinite == Search::kNone) return {.threshold = std::bit_cast<float>(found.cut.cut)};
    return {.nonfinite = found.nonfinite, .nonfinite_value = value_at(ctx, &e[found.nonfinite])};
  }

  void take(Context& ctx, uint32_t bits, std::span<float> e, uint32_t base,
            SparseVector& out) override {
    const size_t most = reaching(bits);
    marks_.set_cut(ctx, {.cut = bits - 1, .wanted = 0});
    marks_.take(ctx, ~0u, most, e, base, out);
  }

 private:
  static const float* data(std::span<const float> g) { return g.empty() ? nullptr : g.data(); }
  unsigned blocks() const { return static_cast<unsigned>(marks_.tiles()); }
  unsigned scan_blocks() const {
    return static_cast<unsigned>(std::clamp<int64_t>(marks_.tiles(), 1, kMaxBlocks));
  }
  MarkedValues values() { return {marks_.words(), e_, marks_.tiles() * kTileWords}; }

  void start(Context& ctx, std::span<float> e, uint32_t least, size_t wanted) {
    ctx_ = &ctx;
    e_ = e.data();
    min_bits_ = least;
    known_ = false;
    marks_.begin(ctx, e.size(), least, wanted);
  }

  void mark(Context& ctx, std::span<const float> g, std::span<float> e, const Lower& lower) {
    if (e.empty()) return;
    const auto kernel = g.empty() ? mark_kernel<false> : mark_kernel<true>;
    launch(ctx, "select", kernel, blocks(), kThreads, marks_.size(), data(g), e.data(), lower,
           marks_.words(), &marks_.memory()->search);
  }

  /// Counts of the last collection; the first call waits for the device.
  const Search& found() {
    if (!known_) found_ = marks_.found(*ctx_);
    known_ = true;
    return found_;
  }

  Bitmask marks_;
  Context* ctx_ = nullptr;
  const float* e_ = nullptr;
  uint32_t min_bits_ = 0;
  Lower lower_;
  bool known_ = false;
  Search found_{};
};

const bool candidates_registered = candidates_dispatch.add(
    Device::cuda,
    []() -> std::unique_ptr<Candidates> { return std::make_unique<DeviceCandidates>(); });

}  // namespace
}  // namespace tw::cuda
