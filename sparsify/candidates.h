// Candidates: the entries of u large enough to be worth a closer look, found in one pass.
#pragma once

#include <span>
#include <vector>

#include "engine/context.h"
#include "sparsify/magnitude.h"
#include "sparsify/selector.h"
#include "sparsify/sparse_vector.h"

namespace tw {

class Candidates {
 public:
  /// e += g (g may be empty: e holds u already), keeping every entry of at least `min_bits`.
  void collect(Context& ctx, std::span<const float> g, std::span<float> e, uint32_t min_bits);
  /// The same, and in the same pass the number of entries of at least `count_bits`.
  size_t collect_and_count(Context& ctx, std::span<const float> g, std::span<float> e,
                           uint32_t min_bits, uint32_t count_bits);

  size_t count() const;
  /// Ascending runs that follow each other; how u is cut into runs depends on the thread count,
  /// their concatenation does not.
  std::span<const SparseVector> runs() const { return runs_; }

 private:
  std::vector<SparseVector> runs_;
  std::vector<size_t> counted_;  // per run
};

inline constexpr size_t kSamples = 8192;
/// Where sample i of a vector of d elements is taken, i < min(d, kSamples): one place a stratum.
size_t sample_position(size_t i, size_t d);

/// A threshold (magnitude bits) that about k entries of u = g + e reach, rather more than fewer:
/// the k-th largest as the sample has it, minus a margin of five standard deviations.
uint32_t sampled_threshold(std::span<const float> g, std::span<const float> e, size_t k,
                           LogHistogram& histogram);

/// The bin edge that at least k entries of u reach and fewer than k exceed by a bin; reads all of
/// u. Never 0: zeros are no candidates. `histograms`, one a thread, belong to the caller so that
/// the next call allocates nothing.
uint32_t counted_threshold(Context& ctx, std::span<const float> u, size_t k,
                           std::vector<LogHistogram>& histograms);

/// The first NaN or infinity among the candidates, if any.
SelectInfo first_nonfinite(const Candidates& candidates);

/// Magnitude and position as one number: the larger magnitude first, then the lower index.
/// `resolution` masks magnitude bits that do not count.
constexpr uint64_t rank_key(float value, uint32_t index, uint32_t resolution) {
  return uint64_t{magnitude_bits(value) & resolution} << 32 | ~index;
}

/// Moves every candidate with rank_key >= cut to `out`, ascending, and zeroes it in e.
void take(const Candidates& candidates, uint64_t cut, uint32_t resolution, std::span<float> e,
          uint32_t base, SparseVector& out);

}  // namespace tw
