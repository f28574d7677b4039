// Candidates on a GPU: the stages of marked_vectors_cuda.h.
#include <optional>

#include "engine/core/copy.h"
#include "sparsify/kernels/candidate_group.h"
#include "sparsify/kernels/marked_vectors_cuda.h"

namespace tw::cuda {

namespace {

/// Begins a selection: the least magnitude to mark is the edge of the LogHistogram's bin of the
/// sample's `rank`-th largest. A rank beyond the sample gives the least bin. Launched with one
/// block.
__global__ void __launch_bounds__(kThreads)
    sample_kernel(int64_t n, const float* g, const float* e, uint32_t rank, Search search) {
  constexpr int kEach = kSamples / kThreads;
  constexpr uint32_t kEdge = ~0u << LogHistogram::kShift;
  __shared__ uint32_t bins[RadixDigits::kMostBins];
  __shared__ RadixCut cut;
  const int thread = static_cast<int>(threadIdx.x);
  const int size = static_cast<int>(min(n, int64_t{kSamples}));
  const int own = (size - thread + kThreads - 1) / kThreads;  // samples of this thread
  uint32_t samples[kEach];
#pragma unroll
  for (int s = 0; s < kEach; ++s) {
    const size_t at = s < own ? sample_position(s * kThreads + thread, n) : 0;
    samples[s] = magnitude_bits(g != nullptr ? e[at] + g[at] : e[at]);
  }
  if (thread == 0) cut = {.cut = 0, .wanted = rank};

  for (int pass = 0; pass < 2; ++pass) {  // two digits have all bits of kEdge
    for (int b = thread; b < RadixDigits::bins(pass); b += kThreads) bins[b] = 0;
    __syncthreads();
#pragma unroll
    for (int s = 0; s < kEach; ++s)
      if (s < own && cut.matches(samples[s], pass))
        atomicAdd(&bins[RadixDigits::digit(samples[s], pass)], 1u);
    __syncthreads();
    find_bin(bins, RadixDigits::bins(pass), cut.wanted,
             [&](uint32_t bin, uint32_t above) { cut.narrow(bin, above, pass); });
    __syncthreads();
  }
  search.begin(candidate_bits(cut.cut & kEdge));
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
  Search search;

  __device__ uint32_t* barrier() const { return &search.memory->barrier; }
  __device__ void operator()(int phase) const {
    const Search::Progress now = search.advance(nth, phase);
    if (phase == RadixDigits::kPasses) {
      if (first_index() == 0) search.found->cut = now.cut;
    } else if (!now.settled) {
      search.count_digits(*this, phase, ~0u, now.cut);
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
                RadixCut{.cut = 0, .wanted = limited(nth)}, vectors.search(bodies.count)});
  }
  run_phases(ctx, "select", RadixDigits::kPasses + 1, (most + kThreads - 1) / kThreads, bodies);
}

const float* data(std::span<const float> g) { return g.empty() ? nullptr : g.data(); }

Marks::Lower lower_thresholds(std::span<const uint32_t> bits) {
  check<std::logic_error>(bits.size() <= Marks::Lower::kMost, "[candidates] {} thresholds",
                          bits.size());
  Marks::Lower lower{.count = static_cast<int>(bits.size())};
  std::ranges::copy(bits, lower.bits);
  return lower;
}

/// The number of elements of at least `bits`, if the pass that marked counted them.
std::optional<size_t> counted(const MarkedVectors::Threshold& threshold, const Search::Found& found,
                              uint32_t bits) {
  if (bits == found.least) return found.marked;
  for (int l = 0; l < threshold.lower.count; ++l)
    if (threshold.lower.bits[l] == bits) return found.lower[l];
  return std::nullopt;
}

SelectInfo info_of(Context& ctx, const Search::Found& found, std::span<const float> e) {
  if (found.nonfinite == Search::Found::kNone)
    return {.threshold = std::bit_cast<float>(found.cut.cut)};
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
               std::span<const uint32_t> lower, Moments* moments) override {
    g = measured(ctx, g, e, moments);
    start(ctx, e, {.g = data(g), .least = min_bits, .lower = lower_thresholds(lower)}, 0);
    vector_.begin(ctx, {&threshold_, 1});
    vector_.mark(ctx, {&threshold_, 1});
  }

  void collect_largest(Context& ctx, std::span<const float> g, std::span<float> e, size_t k,
                       Moments* moments) override {
    g = measured(ctx, g, e, moments);
    start(ctx, e, {.g = data(g), .least = 1}, k);
    if (e.empty()) return vector_.begin(ctx, {&threshold_, 1});
    launch(ctx, "select", sample_kernel, 1, kThreads, std::ssize(e), data(g), e.data(),
           static_cast<uint32_t>(sample_rank(k, e.size())), vector_.search(0));
    vector_.mark(ctx, {&threshold_, 1});
  }

  bool keeps(uint32_t bits) override { return bits >= found().least; }

  size_t count() override { return found().marked; }

  size_t reaching(uint32_t bits) override {
    if (const auto known = counted(threshold_, found(), bits)) return *known;
    check<std::logic_error>(keeps(bits), "[candidates] {:#x} was not counted", bits);
    Context& ctx = *ctx_;
    unsigned long long* const total = &vector_.search(0).found->moved;
    expect(cudaMemsetAsync(total, 0, sizeof *total, stream(ctx)), "select");
    const Marks& marks = vector_.marks(0);
    const auto blocks = static_cast<unsigned>(std::clamp<int64_t>(marks.blocks(), 1, kMaxBlocks));
    launch(ctx, "select", reaching_kernel, blocks, kThreads, marks, bits, total);
    return vector_.found(ctx)[0].moved;
  }

  SelectInfo take_largest(Context& ctx, size_t k, uint32_t resolution, std::span<float> e,
                          uint32_t base, SparseVector& out) override {
    const MarkedVectors::Take one{.most = std::min(k, e.size()),
                                  .base = base,
                                  .cut = {.cut = 0, .wanted = limited(k)},
                                  .resolution = resolution,
                                  .search = true,
                                  .complete = k <= complete_};
    return info_of(ctx, vector_.take(ctx, {&one, 1}, out)[0], e);
  }

  void take(Context& ctx, uint32_t bits, std::span<float>, uint32_t base,
            SparseVector& out) override {
    const MarkedVectors::Take one{
        .most = reaching(bits), .base = base, .cut = {.cut = bits - 1, .wanted = 0}};
    vector_.take(ctx, {&one, 1}, out);
  }

 private:
  /// Takes moments, if they are asked for; returns what is left to add to e.
  std::span<const float> measured(Context& ctx, std::span<const float> g, std::span<float> e,
                                  Moments* moments) {
    if (moments == nullptr) return g;
    *moments = add_and_moments(ctx, g, e, blocks_);
    return {};
  }

  void start(Context& ctx, std::span<float> e, const MarkedVectors::Threshold& threshold,
             size_t complete) {
    ctx_ = &ctx;
    threshold_ = threshold;
    complete_ = complete;
    known_ = false;
    vector_.refer_to(e);
  }

  /// Counts of the last collection; the first call waits for the device.
  const Search::Found& found() {
    if (!known_) found_ = vector_.found(*ctx_)[0];
    known_ = true;
    return found_;
  }

  MarkedVectors vector_;
  Context* ctx_ = nullptr;
  MarkedVectors::Threshold threshold_;
  size_t complete_ = 0;  // how many of the largest are kept for sure, whatever the threshold is
  bool known_ = false;
  Search::Found found_{};
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
                           [](const Search::Found& found) { return found.cut.cut; });
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
      takes_.push_back({.vector = v,
                        .most = std::min(k, es_[v].size()),
                        .base = base,
                        .cut = {.cut = 0, .wanted = limited(k)},
                        .search = true});
    }
    const std::span<const Search::Found> found = marked_.take(ctx, takes_, out);
    for (size_t v = 0; v < infos.size(); ++v) infos[v] = info_of(ctx, found[v], es_[v]);
  }

 private:
  MarkedVectors marked_;
  std::vector<Vector> vectors_;
  std::vector<std::span<float>> es_;
  std::vector<MarkedVectors::Threshold> thresholds_, asked_;  // of each vector; of a collection
  std::vector<MarkedVectors::Take> takes_;
  std::span<const Search::Found> found_;  // empty: not known
};

const bool candidates_registered = candidates_dispatch.add<DeviceCandidates>(Device::cuda);
const bool group_registered = candidate_group_dispatch.add<DeviceCandidateGroup>(Device::cuda);

}  // namespace
}  // namespace tw::cuda
