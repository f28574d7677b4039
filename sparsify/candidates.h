// Candidates: the entries of u large enough to be worth a closer look, found in one pass.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "engine/context.h"
#include "sparsify/magnitude.h"
#include "sparsify/selector.h"
#include "sparsify/sparse_vector.h"

namespace tw {

class Candidates {
 public:
  /// e += g (g may be empty: e holds u already), keeping every entry of at least `min_bits` and
  /// counting, in the same pass, those of at least each of `lower`.
  void collect(Context& ctx, std::span<const float> g, std::span<float> e, uint32_t min_bits,
               std::span<const uint32_t> lower = {});
  /// Collects again, from e which holds u, when entries down to `bits` are wanted and not kept.
  void widen(Context& ctx, std::span<float> e, uint32_t bits);

  size_t count() const;
  /// The number of entries of u of at least `bits`: not below what is kept, or one of `lower`.
  size_t reaching(uint32_t bits) const;
  /// Ascending runs that follow each other; how u is cut into runs depends on the thread count,
  /// their concatenation does not.
  std::span<const SparseVector> runs() const { return {runs_.data(), in_use_}; }

 private:
  std::vector<SparseVector> runs_;  // more than in use after a longer vector: memory is kept
  size_t in_use_ = 0;
  uint32_t min_bits_ = 0;
  std::vector<uint32_t> lower_;
  std::vector<size_t> counted_;  // for each run, for each of lower_
};

inline constexpr size_t kSamples = 8192;
/// Where sample i of a vector of d elements is taken, i < min(d, kSamples): one place a stratum.
size_t sample_position(size_t i, size_t d);

/// A threshold (magnitude bits) that about k entries of u = g + e reach, rather more than fewer:
/// the k-th largest as the sample has it, minus a margin of five standard deviations. g may be
/// empty: e holds u already.
uint32_t sampled_threshold(std::span<const float> g, std::span<const float> e, size_t k,
                           LogHistogram& histogram);

/// The bin edge that at least k entries of u reach and fewer than k exceed by a bin; reads all of
/// u. Never 0: zeros are no candidates. `histograms`, one a thread, belong to the caller so that
/// the next call allocates nothing.
uint32_t counted_threshold(Context& ctx, std::span<const float> u, size_t k,
                           std::vector<LogHistogram>& histograms);

/// Magnitude and position as one number: the larger magnitude first, then the lower index.
/// `resolution` masks magnitude bits that do not count.
constexpr uint64_t rank_key(float value, uint32_t index, uint32_t resolution = ~0u) {
  return uint64_t{magnitude_bits(value) & resolution} << 32 | ~index;
}
/// The k-th largest of the keys (of any numbers), which change places. 1 <= k <= keys.size()
template <class Key>
Key kth_largest(std::vector<Key>& keys, size_t k) {
  const auto kth = keys.begin() + static_cast<ptrdiff_t>(k - 1);
  std::nth_element(keys.begin(), kth, keys.end(), std::greater<>());
  return *kth;
}
/// The smallest key of a magnitude of at least `bits`.
constexpr uint64_t least_key(uint32_t bits) { return uint64_t{bits} << 32; }

/// Moves every candidate with rank_key >= cut, `most` at most, to `out`, ascending, and zeroes it
/// in e.
void take(const Candidates& candidates, uint64_t cut, size_t most, uint32_t resolution,
          std::span<float> e, uint32_t base, SparseVector& out);

}  // namespace tw
