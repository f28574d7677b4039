// Candidates on a GPU: one kernel marks them in the pass that adds, another takes from them.
#include <optional>

#include "engine/core/copy.h"
#include "sparsify/kernels/candidate_group.h"
#include "sparsify/kernels/marked_vectors_cuda.h"

namespace tw::cuda {

namespace {

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
    sample_kernel(int64_t n, const float* g, const float* e, uint32_t rank, SearchState state) {
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
  state.begin(candidate_bits(shared.found));
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
  SearchState state;

  __device__ uint32_t* barrier() const { return &state.memory->barrier; }
  __device__ void operator()(int phase) const {
    const SearchProgress now = state.advance(nth, phase);
    if (phase == RadixDigits::kPasses) {
      if (first_index() == 0) state.search->cut = now.cut;
    } else if (!now.settled) {
      state.count_digits(*this, phase, ~0u, now.cut);
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

/// Stores the bits of the nth largest magnitude of each sample in the cut of a vector.
void search_samples(Context& ctx, const MarkedVectors& vectors,
                    std::span<const NthOfSample> samples) {
  Bodies<NthMagnitude> bodies{};
  int64_t most = 0;
  for (const auto& [sample, nth] : samples) {
    const auto count = static_cast<int64_t>(sample.size());
    most = std::max(most, count);
    bodies.add({sample.g.data() + sample.first, sample.e.data() + sample.first,
                static_cast<int64_t>(sample.stride), count,
                RadixCut{.cut = 0, .wanted = limited(nth)}, vectors.state(bodies.count)});
  }
  run_phases(ctx, "select", RadixDigits::kPasses + 1, (most + kThreads - 1) / kThreads, bodies);
}

const float* data(std::span<const float> g) { return g.empty() ? nullptr : g.data(); }

Lower lower_thresholds(std::span<const uint32_t> bits) {
  check<std::logic_error>(bits.size() <= Lower::kMost, "[candidates] {} thresholds", bits.size());
  Lower lower{.count = static_cast<int>(bits.size())};
  std::ranges::copy(bits, lower.bits);
  return lower;
}

/// The number of elements of at least `bits`, if the pass that marked counted them.
std::optional<size_t> counted(const Threshold& threshold, const Search& found, uint32_t bits) {
  if (bits == threshold.least) return found.marked;
  for (int l = 0; l < threshold.lower.count; ++l)
    if (threshold.lower.bits[l] == bits) return found.lower[l];
  return std::nullopt;
}

SelectInfo info_of(Context& ctx, const Search& found, std::span<const float> e) {
  if (found.nonfinite == Search::kNone) return {.threshold = std::bit_cast<float>(found.cut.cut)};
  return {.nonfinite = found.nonfinite, .nonfinite_value = value_at(ctx, &e[found.nonfinite])};
}

class DeviceCandidates : public Candidates {
 public:
  uint32_t nth_magnitude(Context& ctx, const StridedSum& sample, size_t nth) override {
    start(ctx, {}, {}, 0);
    vector_.begin(ctx, {&threshold_, 1});
    const NthOfSample one{sample, nth};
    search_samples(ctx, vector_, {&one, 1});
    return vector_.found(ctx)[0].cut.cut;
  }

  void collect(Context& ctx, std::span<const float> g, std::span<float> e, uint32_t min_bits,
               std::span<const uint32_t> lower) override {
    start(ctx, e, {.g = data(g), .least = min_bits, .lower = lower_thresholds(lower)}, 0);
    vector_.begin(ctx, {&threshold_, 1});
    vector_.mark(ctx, {&threshold_, 1});
  }

  void collect_largest(Context& ctx, std::span<const float> g, std::span<float> e,
                       size_t k) override {
    start(ctx, e, {.g = data(g), .least = 1}, k);
    if (e.empty()) return vector_.begin(ctx, {&threshold_, 1});
    launch(ctx, "select", sample_kernel, 1, kThreads, std::ssize(e), data(g), e.data(),
           static_cast<uint32_t>(sample_rank(k, e.size())), vector_.state(0));
    vector_.mark(ctx, {&threshold_, 1});
  }

  void widen(Context& ctx, std::span<float> e, uint32_t bits) override {
    if (bits < threshold_.least) collect(ctx, {}, e, bits, {});
  }

  size_t count() override { return found().marked; }

  size_t reaching(uint32_t bits) override {
    if (const auto known = counted(threshold_, found(), bits)) return *known;
    check<std::logic_error>(bits >= threshold_.least, "[candidates] {:#x} was not counted", bits);
    Context& ctx = *ctx_;
    Search* const search = vector_.state(0).search;
    expect(cudaMemsetAsync(&search->moved, 0, sizeof search->moved, stream(ctx)), "select");
    const Marks& marks = vector_.marks(0);
    const auto blocks = static_cast<unsigned>(std::clamp<int64_t>(marks.blocks(), 1, kMaxBlocks));
    launch(ctx, "select", reaching_kernel, blocks, kThreads, marks, bits, &search->moved);
    return vector_.found(ctx)[0].moved;
  }

  SelectInfo take_largest(Context& ctx, size_t k, uint32_t resolution, std::span<float> e,
                          uint32_t base, SparseVector& out) override {
    const Choice choice{.cut = {.cut = 0, .wanted = limited(k)},
                        .resolution = resolution,
                        .search = true,
                        .complete = k <= complete_};
    const MarkedVectors::Take one{0, choice, std::min(k, e.size()), base};
    return info_of(ctx, vector_.take(ctx, {&one, 1}, out)[0], e);
  }

  void take(Context& ctx, uint32_t bits, std::span<float>, uint32_t base,
            SparseVector& out) override {
    const MarkedVectors::Take one{0, {.cut = {.cut = bits - 1, .wanted = 0}}, reaching(bits), base};
    vector_.take(ctx, {&one, 1}, out);
  }

 private:
  void start(Context& ctx, std::span<float> e, const Threshold& threshold, size_t complete) {
    ctx_ = &ctx;
    threshold_ = threshold;
    complete_ = complete;
    known_ = false;
    vector_.refer_to(e);
  }

  /// Counts of the last collection; the first call waits for the device.
  const Search& found() {
    if (!known_) found_ = vector_.found(*ctx_)[0];
    known_ = true;
    return found_;
  }

  MarkedVectors vector_;
  Context* ctx_ = nullptr;
  Threshold threshold_;
  size_t complete_ = 0;  // how many of the largest are kept for sure, whatever the threshold is
  bool known_ = false;
  Search found_{};
};

class DeviceCandidateGroup : public CandidateGroup {
 public:
  size_t most() const override { return kMostBodies; }

  void refer_to(std::span<const Vector> vectors) override {
    vectors_.assign(vectors.begin(), vectors.end());
    thresholds_.clear();
    es_.clear();
    for (const Vector& each : vectors) {
      thresholds_.push_back({.vector = es_.size()});
      es_.push_back(each.e);
    }
    marked_.refer_to(es_);
  }

  void nth_magnitudes(Context& ctx, std::span<const NthOfSample> samples,
                      std::span<uint32_t> bits) override {
    marked_.begin(ctx, thresholds_);
    search_samples(ctx, marked_, samples);
    std::ranges::transform(marked_.found(ctx), bits.begin(),
                           [](const Search& found) { return found.cut.cut; });
  }

  void collect(Context& ctx, std::span<const Collection> collections) override {
    if (collections.empty()) return;
    asked_.clear();
    for (const auto& [vector, add, min_bits, lower] : collections) {
      thresholds_[vector] = {.vector = vector,
                             .g = add ? data(vectors_[vector].g) : nullptr,
                             .least = min_bits,
                             .lower = lower_thresholds(lower)};
      asked_.push_back(thresholds_[vector]);
    }
    marked_.begin(ctx, asked_);
    marked_.mark(ctx, asked_);
    found_ = {};
  }

  size_t reaching(Context& ctx, size_t vector, uint32_t bits) override {
    if (found_.empty()) found_ = marked_.found(ctx);
    const auto known = counted(thresholds_[vector], found_[vector], bits);
    check<std::logic_error>(known.has_value(), "[candidates] {:#x} was not counted", bits);
    return *known;
  }

  void take_largest(Context& ctx, std::span<const Largest> wanted, std::span<SelectInfo> infos,
                    SparseVector& out) override {
    takes_.clear();
    for (const auto& [k, base] : wanted) {
      const size_t v = takes_.size();
      const Choice choice{.cut = {.cut = 0, .wanted = limited(k)}, .search = true};
      takes_.push_back({v, choice, std::min(k, es_[v].size()), base});
    }
    const std::span<const Search> found = marked_.take(ctx, takes_, out);
    for (size_t v = 0; v < infos.size(); ++v) infos[v] = info_of(ctx, found[v], es_[v]);
  }

 private:
  MarkedVectors marked_;
  std::vector<Vector> vectors_;
  std::vector<std::span<float>> es_;
  std::vector<Threshold> thresholds_, asked_;  // of each vector; of a collection
  std::vector<MarkedVectors::Take> takes_;
  std::span<const Search> found_;  // empty: not known
};

const bool candidates_registered = candidates_dispatch.add<DeviceCandidates>(Device::cuda);
const bool group_registered = candidate_group_dispatch.add<DeviceCandidateGroup>(Device::cuda);

}  // namespace
}  // namespace tw::cuda
