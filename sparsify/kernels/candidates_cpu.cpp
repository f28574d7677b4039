#include "sparsify/kernels/candidates_cpu.h"

#include <algorithm>

#include "engine/core/parallel.h"
#include "sparsify/kernels/stream_compaction.h"

#define TW_KERNELS "sparsify/kernels/candidates_cpu.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::TW_CPU {

inline size_t count_at_least(const float* u, size_t n, uint32_t bits) {
  uint32_t count = 0;
  for (size_t i = 0; i < n; ++i) count += magnitude_bits(u[i]) >= bits;
  return count;
}

}  // namespace tw::TW_CPU
#else
namespace tw {

namespace {

// Elements per thread: one contiguous part of d, in whole blocks.
size_t part_length(const Context& ctx, size_t d) {
  const size_t blocks = (d + kBlock - 1) / kBlock;
  const size_t threads = static_cast<size_t>(ctx.threads());
  return std::max<size_t>(1, (blocks + threads - 1) / threads) * kBlock;
}

/// The lower edge of the histogram bin that holds the k-th largest magnitude of u. Reads all of u.
/// At least 1, since zeros are not candidates.
uint32_t counted_threshold(Context& ctx, std::span<const float> u, size_t k,
                           std::vector<LogHistogram>& histograms) {
  const size_t part = part_length(ctx, u.size()), parts = (u.size() + part - 1) / part;
  if (histograms.size() < parts) histograms.resize(parts);
  parallel_for(ctx, u.size(), part, [&](size_t begin, size_t end) {
    LogHistogram& mine = histograms[begin / part];
    mine.clear();
    for (size_t i = begin; i < end; ++i) mine.add(magnitude_bits(u[i]));
  });
  for (size_t i = 1; i < parts; ++i) histograms[0].add(histograms[i]);
  return candidate_bits(histograms[0].cut(k).edge);
}

/// Adds the entries that reach a threshold to the tails of their blocks, in the order of tail_of.
/// Without branches, which would be mispredicted.
void add_tails(const SparseVector& run, uint32_t bits, std::span<Tail> tails) {
  for (size_t i = 0; i < run.count;) {
    const size_t block = run.indices[i] / kMeasureBlock;
    double lanes[kMeasureLanes] = {};
    uint32_t least = kInfinityBits, count = 0;
    for (; i < run.count && run.indices[i] / kMeasureBlock == block; ++i) {
      const uint32_t size = magnitude_bits(run.values[i]);
      const uint32_t reaches = size >= bits ? ~0u : 0;
      lanes[run.indices[i] % kMeasureLanes] += double{std::bit_cast<float>(size & reaches)};
      least = std::min(least, (size & reaches) | (kInfinityBits & ~reaches));
      count += reaches & 1;
    }
    tails[block] = {.least = std::bit_cast<float>(least), .count = count};
    for (const double lane : lanes) tails[block].sum += lane;
  }
}

}  // namespace

uint32_t HostCandidates::nth_magnitude(Context&, const StridedSum& sample, size_t nth) {
  const auto& [g, e, first, stride] = sample;
  magnitudes_.clear();
  magnitudes_.reserve(e.size() / stride + 1);  // enough for every `first`
  for (size_t i = first; i < e.size(); i += stride)
    magnitudes_.push_back(magnitude_bits(g[i] + e[i]));
  return kth_largest(magnitudes_, nth);
}

void HostCandidates::collect(Context& ctx, std::span<const float> g, std::span<float> e,
                             uint32_t min_bits, std::span<const uint32_t> lower, Moments* moments) {
  const size_t part = part_length(ctx, e.size());
  min_bits_ = min_bits;
  lower_.assign(lower.begin(), lower.end());
  in_use_ = (e.size() + part - 1) / part;
  if (runs_.size() < in_use_) runs_.resize(in_use_);
  counted_.assign(in_use_ * lower.size(), 0);
  if (moments != nullptr) blocks_.assign(measure_blocks(e.size()), {});
  parallel_for(ctx, e.size(), part, [&](size_t begin, size_t end) {
    SparseVector& run = runs_[begin / part];
    size_t* const counted = counted_.data() + begin / part * lower_.size();
    size_t count = 0;
    for (size_t i = begin; i < end; i += kBlock) {
      const size_t n = std::min(kBlock, end - i);
      run.reserve(count + n);
      count += add_and_compact(g.empty() ? nullptr : g.data() + i, e.data() + i, n, min_bits,
                               static_cast<uint32_t>(i),
                               {run.indices.data() + count, run.values.data() + count},
                               moments == nullptr ? nullptr : &blocks_[i / kBlock]);
      for (size_t j = 0; j < lower_.size(); ++j)
        counted[j] += TW_KERNEL(count_at_least, e.data() + i, n, lower_[j]);
    }
    run.count = count;
  });
  if (moments != nullptr) *moments = total_of(blocks_);
  // Headroom: the next step's total is similar, but may shift between the runs. The threshold of a
  // short vector comes from a small sample, so its total may be anything. A run that holds a total
  // like this one is left as it is: the total of a later step may be a little larger.
  constexpr size_t kShort = size_t{1} << 16;
  const size_t total = count();
  for (SparseVector& run : std::span(runs_).first(in_use_))
    if (run.capacity() < std::min(std::max(total, kShort), part) + kBlock)
      run.reserve(std::min(std::max(total + total / 2, kShort), part) + kBlock);
}

// Exact for any sample: if fewer than k entries pass, takes the threshold from a histogram of all
// of u.
void HostCandidates::collect_largest(Context& ctx, std::span<const float> g, std::span<float> e,
                                     size_t k, Moments* moments) {
  const uint32_t threshold = sampled_threshold(g, e, k, sample_);
  collect(ctx, g, e, threshold, {}, moments);
  if (count() < k && threshold > 1) collect(ctx, {}, e, counted_threshold(ctx, e, k, whole_));
}

size_t HostCandidates::count() {
  size_t count = 0;
  for (const SparseVector& run : runs()) count += run.count;
  return count;
}

size_t HostCandidates::reaching(uint32_t bits) {
  size_t count = 0;
  if (bits >= min_bits_) {
    for (const SparseVector& run : runs())
      count += TW_KERNEL(count_at_least, run.values.data(), run.count, bits);
    return count;
  }
  const size_t at = std::ranges::find(lower_, bits) - lower_.begin();
  check<std::logic_error>(at < lower_.size(), "[candidates] {:#x} was not counted", bits);
  for (size_t i = at; i < counted_.size(); i += lower_.size()) count += counted_[i];
  return count;
}

Tail HostCandidates::tail(Context& ctx, std::span<const float> u, uint32_t bits) {
  if (!keeps(bits)) return Candidates::tail(ctx, u, bits);
  tails_.assign(measure_blocks(u.size()), {});
  parallel_for(ctx, in_use_, 1, [&](size_t r, size_t) { add_tails(runs_[r], bits, tails_); });
  return total_of(tails_);
}

SelectInfo HostCandidates::take_largest(Context& ctx, size_t k, uint32_t resolution,
                                        std::span<float> e, uint32_t base, SparseVector& out) {
  taken_.clear();
  for (const SparseVector& run : runs())
    for (size_t i = 0; i < run.count; ++i) taken_.add(magnitude_bits(run.values[i]));
  if (taken_.cut(1).edge >= kInfinityBits) return name_nonfinite(ctx, e);

  const uint64_t cut = cut_key(k, resolution);
  take_from(cut, k, resolution, e, base, out);
  return {.threshold = std::bit_cast<float>(static_cast<uint32_t>(cut >> 32))};
}

uint64_t HostCandidates::cut_key(size_t k, uint32_t resolution) {
  if (count() <= k) return 0;
  const auto [edge, above] = taken_.cut(k);

  // only the bin with the k-th entry has to be sorted
  keys_.clear();
  keys_.reserve(k);
  for (const SparseVector& run : runs())
    for (size_t i = 0; i < run.count; ++i)
      if (magnitude_bits(run.values[i]) >> LogHistogram::kShift == edge >> LogHistogram::kShift)
        keys_.push_back(rank_key(run.values[i], run.indices[i], resolution));
  return kth_largest(keys_, k - above);
}

void HostCandidates::take(Context&, uint32_t bits, std::span<float> e, uint32_t base,
                          SparseVector& out) {
  take_from(least_key(bits), e.size(), ~0u, e, base, out);
}

void HostCandidates::take_from(uint64_t cut, size_t most, uint32_t resolution, std::span<float> e,
                               uint32_t base, SparseVector& out) const {
  const size_t first = out.count;
  size_t candidates = 0;
  for (const SparseVector& run : runs()) candidates += run.count;
  // Each entry is written, and kept by advancing the count: no branch to mispredict. This needs
  // room for one more than is kept.
  out.reserve(first + std::min(most, candidates) + 1);
  size_t count = first;
  for (const SparseVector& run : runs())
    for (size_t i = 0; i < run.count; ++i) {
      out.indices[count] = base + run.indices[i];
      count += rank_key(run.values[i], run.indices[i], resolution) >= cut;
    }
  out.count = count;
  move_values(e, base, out, first);
}

// On one thread: cache misses overlap, and a second parallel loop would cost more than it saves.
uint32_t sampled_threshold(std::span<const float> g, std::span<const float> e, size_t k,
                           LogHistogram& histogram) {
  const size_t d = e.size(), n = std::min(d, kSamples);
  histogram.clear();
  for (size_t i = 0; i < n; ++i) {
    const size_t at = sample_position(i, d);
    histogram.add(magnitude_bits(g.empty() ? e[at] : g[at] + e[at]));
  }

  return candidate_bits(histogram.cut(sample_rank(k, d)).edge);
}

namespace {

const bool candidates_cpu_registered = candidates_dispatch.add<HostCandidates>(Device::cpu);

}  // namespace

}  // namespace tw
#endif
