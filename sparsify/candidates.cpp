#include "sparsify/candidates.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/parallel.h"
#include "engine/simd.h"
#include "sparsify/compact.h"

namespace tw {

namespace {

constexpr size_t kBlock = 4096;

constexpr size_t kAhead = 32;
constexpr uint32_t kNoCount = ~0u;

TW_MULTIVERSION size_t count_at_least(const float* u, size_t n, uint32_t bits) {
  uint32_t count = 0;
  for (size_t i = 0; i < n; ++i) count += magnitude_bits(u[i]) >= bits;
  return count;
}

// one contiguous part of d per thread, whole blocks
size_t part_length(const Context& ctx, size_t d) {
  const size_t blocks = (d + kBlock - 1) / kBlock;
  const size_t threads = static_cast<size_t>(ctx.threads());
  return std::max<size_t>(1, (blocks + threads - 1) / threads) * kBlock;
}

}  // namespace

void Candidates::collect(Context& ctx, std::span<const float> g, std::span<float> e,
                         uint32_t min_bits) {
  collect_and_count(ctx, g, e, min_bits, kNoCount);
}

size_t Candidates::collect_and_count(Context& ctx, std::span<const float> g, std::span<float> e,
                                     uint32_t min_bits, uint32_t count_bits) {
  const size_t part = part_length(ctx, e.size());
  runs_.resize((e.size() + part - 1) / part);
  counted_.assign(runs_.size(), 0);
  parallel_for(ctx, e.size(), part, [&](size_t begin, size_t end) {
    SparseVector& run = runs_[begin / part];
    size_t count = 0;
    for (size_t i = begin; i < end; i += kBlock) {
      const size_t n = std::min(kBlock, end - i);
      run.reserve(count + n);
      count += add_and_compact(g.empty() ? nullptr : g.data() + i, e.data() + i, n, min_bits,
                               static_cast<uint32_t>(i),
                               {run.indices.data() + count, run.values.data() + count});
      // the block is still in the first-level cache
      if (count_bits != kNoCount)
        counted_[begin / part] += count_at_least(e.data() + i, n, count_bits);
    }
    run.count = count;
  });
  // headroom: the next step's total is near this one, but may shift between the runs
  const size_t total = this->count();
  for (SparseVector& run : runs_) run.reserve(std::min(total + total / 2, part) + kBlock);
  return std::accumulate(counted_.begin(), counted_.end(), size_t{0});
}

size_t Candidates::count() const {
  size_t count = 0;
  for (const SparseVector& run : runs_) count += run.count;
  return count;
}

size_t sample_position(size_t i, size_t d) {
  if (d <= kSamples) return i;
  const size_t first = i * d / kSamples, width = (i + 1) * d / kSamples - first;
  // a fixed low-discrepancy jitter keeps the sample off any period of the parameters
  const uint64_t fraction = (i * 0x9E3779B97F4A7C15ull) >> 32;
  return first + static_cast<size_t>((fraction * width) >> 32);
}

// on one thread: the misses overlap, and a second parallel loop would cost more than it saves
uint32_t sampled_threshold(std::span<const float> g, std::span<const float> e, size_t k,
                           LogHistogram& histogram) {
  const size_t d = e.size(), n = std::min(d, kSamples);
  histogram.clear();
  for (size_t i = 0; i < n; ++i) {
    const size_t at = sample_position(i, d);
    histogram.add(magnitude_bits(g[at] + e[at]));
  }

  // of n samples, about `expected` lie among the k largest of u
  const double expected = static_cast<double>(k) / static_cast<double>(d) * static_cast<double>(n);
  const double rank = std::ceil(expected + 5 * std::sqrt(expected) + 2);
  // without NaN and infinity, which no finite threshold may hide
  return std::clamp(histogram.cut(static_cast<size_t>(rank)).edge, 1u, kInfinityBits);
}

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
  return std::clamp(histograms[0].cut(k).edge, 1u, kInfinityBits);
}

SelectInfo first_nonfinite(const Candidates& candidates) {
  for (const SparseVector& run : candidates.runs())
    for (size_t i = 0; i < run.count; ++i)
      if (magnitude_bits(run.values[i]) >= kInfinityBits)
        return {.nonfinite = run.indices[i], .nonfinite_value = run.values[i]};
  return {};
}

void take(const Candidates& candidates, uint64_t cut, uint32_t resolution, std::span<float> e,
          uint32_t base, SparseVector& out) {
  const size_t first = out.count;
  // entries are written always and kept by moving on: no branch to mispredict
  out.reserve(first + candidates.count());
  size_t count = first;
  for (const SparseVector& run : candidates.runs())
    for (size_t i = 0; i < run.count; ++i) {
      out.indices[count] = base + run.indices[i];
      out.values[count] = run.values[i];
      count += rank_key(run.values[i], run.indices[i], resolution) >= cut;
    }
  out.count = count;

  // each of these is a miss to memory: fetch well ahead
  const std::span<const uint32_t> taken = out.index_span().subspan(first);
  for (size_t i = 0; i < taken.size(); ++i) {
    if (i + kAhead < taken.size()) __builtin_prefetch(&e[taken[i + kAhead] - base], 1);
    e[taken[i] - base] = 0;
  }
}

}  // namespace tw
