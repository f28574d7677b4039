// Candidates: the entries of u = g + e large enough to be worth a closer look, found in one pass.
// What selectors are made of; each device has its own.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>

#include "engine/core/dispatch.h"
#include "sparsify/kernels/magnitude.h"
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
  /// For the device of the context; takes no memory before the first collection.
  static std::unique_ptr<Candidates> create(Context& ctx);

  /// Bits of the nth largest magnitude of a sample; n = 1 is the largest.
  virtual uint32_t nth_magnitude(Context& ctx, const StridedSum& sample, size_t nth) = 0;

  /// e += g (g may be empty: e holds u already), keeping every entry of at least `min_bits` and
  /// counting, in the same pass, those of at least each of `lower` (ten at most).
  virtual void collect(Context& ctx, std::span<const float> g, std::span<float> e,
                       uint32_t min_bits, std::span<const uint32_t> lower = {}) = 0;
  /// e += g likewise, keeping the k largest at least (all that are not 0, where those are fewer),
  /// and hardly more than a few times as many on a usual vector. What a device knows of their
  /// number stays there.
  virtual void collect_largest(Context& ctx, std::span<const float> g, std::span<float> e,
                               size_t k) = 0;
  /// Collects again, from e which holds u, when entries down to `bits` are wanted and not kept.
  virtual void widen(Context& ctx, std::span<float> e, uint32_t bits) = 0;

  // behind collect or widen
  virtual size_t count() = 0;
  /// The number of entries of u of at least `bits`: not below what is kept, or one of `lower`.
  virtual size_t reaching(uint32_t bits) = 0;

  /// Moves the k largest candidates (all, where they are no more) from e, which holds u, to `out`.
  /// Names the first NaN or infinity instead; candidates hold it whatever they were collected by.
  /// `resolution`: mask of the magnitude bits that count; where two magnitudes agree in them, the
  /// lower index goes first. All bits: exact. The upper 16: what a LogHistogram can tell apart.
  virtual SelectInfo take_largest(Context& ctx, size_t k, uint32_t resolution, std::span<float> e,
                                  uint32_t base, SparseVector& out) = 0;
  /// Moves every candidate of at least `bits`.
  virtual void take(Context& ctx, uint32_t bits, std::span<float> e, uint32_t base,
                    SparseVector& out) = 0;
};

extern DispatchTable<std::unique_ptr<Candidates>()> candidates_dispatch;

inline constexpr size_t kSamples = 8192;
/// Where sample i of a vector of d elements is taken, i < min(d, kSamples): one place a stratum.
constexpr size_t sample_position(size_t i, size_t d) {
  if (d <= kSamples) return i;
  const size_t first = i * d / kSamples, width = (i + 1) * d / kSamples - first;
  // a fixed low-discrepancy jitter keeps the sample off any period of the parameters
  const uint64_t fraction = (i * 0x9E3779B97F4A7C15ull) >> 32;
  return first + static_cast<size_t>((fraction * width) >> 32);
}
/// From which of the sample's largest on about k of d are reached, rather more than fewer: a margin
/// of five standard deviations.
size_t sample_rank(size_t k, size_t d);
/// A threshold for candidates: not 0, and none that hides a NaN or infinity.
constexpr uint32_t candidate_bits(uint32_t bits) { return std::clamp(bits, 1u, kInfinityBits); }

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

}  // namespace tw
