// Candidates: the entries of u = g + e that exceed a preliminary threshold, found in one pass over
// memory. Selectors are built on it; each device implements it.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>

#include "engine/core/dispatch.h"
#include "sparsify/kernels/magnitude.h"
#include "sparsify/kernels/moments.h"
#include "sparsify/kernels/selection.h"

namespace tw {

/// Every stride-th element of g + e, from `first` on.
struct StridedSum {
  std::span<const float> g, e;
  size_t first, stride;
  constexpr size_t size() const {
    return first < e.size() ? (e.size() - first - 1) / stride + 1 : 0;
  }
};

class Candidates {
 public:
  virtual ~Candidates() = default;
  /// For the device of the context; allocates nothing before the first collection.
  static std::unique_ptr<Candidates> create(Context& ctx);

  /// Bits of the nth largest magnitude of a sample; n = 1 is the largest.
  virtual uint32_t nth_magnitude(Context& ctx, const StridedSum& sample, size_t nth) = 0;

  /// e += g (g may be empty: e holds u already). Keeps every entry with magnitude bits of at least
  /// `min_bits` and counts, in the same pass, those of at least each of `lower` (ten at most).
  /// `moments`: becomes those of u if it is not null; in the same pass on the CPU, before it on
  /// other devices.
  virtual void collect(Context& ctx, std::span<const float> g, std::span<float> e,
                       uint32_t min_bits, std::span<const uint32_t> lower = {},
                       Moments* moments = nullptr) = 0;
  /// The same, but keeps at least the k largest (all non-zeros if those are fewer) and for most
  /// vectors no more than a few times k. On a GPU fewer may be kept; take_largest completes them.
  virtual void collect_largest(Context& ctx, std::span<const float> g, std::span<float> e, size_t k,
                               Moments* moments = nullptr) = 0;
  /// Whether all entries of at least `bits` are kept.
  virtual bool keeps(uint32_t bits) = 0;
  /// Collects again, from e which holds u, unless all entries of at least `bits` are kept already.
  void widen(Context& ctx, std::span<float> e, uint32_t bits) {
    if (!keeps(bits)) collect(ctx, {}, e, bits);
  }

  /// The number of entries that are kept.
  virtual size_t count() = 0;
  /// The number of entries of u of at least `bits`, which are kept or one of `lower`.
  virtual size_t reaching(uint32_t bits) = 0;
  /// tail_of(u) from `bits` on, from the entries that are kept if those are enough.
  virtual Tail tail(Context& ctx, std::span<const float> u, uint32_t bits);

  /// Moves the k largest candidates (all, if they are fewer) from e, which holds u, to `out`. If u
  /// has a NaN or infinity, which is always a candidate, reports the first one instead.
  /// `resolution`: mask of the magnitude bits that are compared; of magnitudes that are equal in
  /// them the lower index is taken. All bits: exact. The upper 16: the bins of a LogHistogram.
  virtual SelectInfo take_largest(Context& ctx, size_t k, uint32_t resolution, std::span<float> e,
                                  uint32_t base, SparseVector& out) = 0;
  /// Moves every candidate of at least `bits`.
  virtual void take(Context& ctx, uint32_t bits, std::span<float> e, uint32_t base,
                    SparseVector& out) = 0;

 protected:
  // working memory of moments and of tails
  std::vector<Moments> blocks_;
  std::vector<Tail> tails_;
};

inline constinit DispatchTable<std::unique_ptr<Candidates>()> candidates_dispatch{"candidates"};

inline constexpr size_t kSamples = 8192;
/// The index of sample i of a vector of d elements, i < min(d, kSamples): one in each stratum.
constexpr size_t sample_position(size_t i, size_t d) {
  if (d <= kSamples) return i;
  const size_t first = i * d / kSamples, width = (i + 1) * d / kSamples - first;
  // a fixed low-discrepancy jitter avoids aliasing with periods in the parameters
  const uint64_t fraction = (i * 0x9E3779B97F4A7C15ull) >> 32;
  return first + static_cast<size_t>((fraction * width) >> 32);
}
/// The rank r in a sample (1: the largest) such that at least k of d elements reach the r-th
/// largest magnitude of the sample, with a margin of five standard deviations.
size_t sample_rank(size_t k, size_t d);
/// A threshold for candidates: excludes zeros and includes NaN and infinity. (With std::clamp,
/// which takes the address of the constant, nvcc generates a trap in kernels.)
constexpr uint32_t candidate_bits(uint32_t bits) {
  return bits < 1 ? 1 : bits < kInfinityBits ? bits : kInfinityBits;
}

/// Magnitude and index as one number, larger for a larger magnitude, then for a lower index.
/// `resolution` masks the magnitude bits that are compared.
constexpr uint64_t rank_key(float value, uint32_t index, uint32_t resolution = ~0u) {
  return uint64_t{magnitude_bits(value) & resolution} << 32 | ~index;
}
/// The k-th largest of the keys, which are reordered. 1 <= k <= keys.size()
template <class Key>
Key kth_largest(std::vector<Key>& keys, size_t k) {
  const auto kth = keys.begin() + static_cast<ptrdiff_t>(k - 1);
  std::nth_element(keys.begin(), kth, keys.end(), std::greater<>());
  return *kth;
}
/// The smallest key of a magnitude of at least `bits`.
constexpr uint64_t least_key(uint32_t bits) { return uint64_t{bits} << 32; }

}  // namespace tw
