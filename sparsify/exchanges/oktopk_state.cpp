#include "sparsify/exchanges/oktopk_state.h"

#include <algorithm>

#include "sparsify/kernels/magnitude.h"

namespace tw {

namespace {

float least_magnitude(const SparseVector& v) {
  uint32_t least = v.count == 0 ? 0 : kInfinityBits;
  for (float value : v.value_span()) least = std::min(least, magnitude_bits(value));
  return std::bit_cast<float>(least);
}

}  // namespace

bool OkTopkState::divides(size_t d) const {
  return knots.front() == 0 && knots.back() == d && std::ranges::is_sorted(knots);
}

uint32_t OkTopkState::border(int rank, int ranks) const {
  // between two knots the border is interpolated
  const uint64_t at = static_cast<uint64_t>(rank) * kPieces, whole = at / ranks, part = at % ranks;
  if (part == 0) return knots[whole];
  const uint64_t width = knots[whole + 1] - knots[whole];
  return static_cast<uint32_t>(knots[whole] + width * part / static_cast<uint64_t>(ranks));
}

std::array<uint32_t, OkTopkState::kPieces + 1> piece_borders(std::span<const uint32_t> indices,
                                                             size_t d) {
  constexpr size_t pieces = OkTopkState::kPieces;
  std::array<uint32_t, pieces + 1> knots{};
  for (size_t j = 1; j < pieces; ++j)
    knots[j] = indices.empty() ? static_cast<uint32_t>(j * d / pieces)
                               : indices[j * indices.size() / pieces];
  knots[pieces] = static_cast<uint32_t>(d);
  return knots;
}

void ThresholdTracker::begin_step(uint64_t step, size_t k, size_t d) {
  // the regions of a vector of another length do not divide this one
  exact_ =
      state_.k != k || k >= d || step % static_cast<uint64_t>(every_) == 0 || !state_.divides(d);
  if (exact_) state_.local = 0;
}

uint32_t ThresholdTracker::least_sum_bits() const {
  return exact_ ? 0 : magnitude_bits(state_.global);
}

void ThresholdTracker::update_local(const SparseVector& selected, size_t k) {
  // an exact selection costs the other ranks nothing, so each rank decides by itself
  const bool astray = 2 * selected.count > 3 * k || 2 * selected.count < k;
  if (state_.local == 0)
    state_.local = least_magnitude(selected);
  else
    state_.local = astray ? 0 : nudged(state_.local, selected.count, k, 2.0 / 3, 1.25, 1.012f);
}

void ThresholdTracker::update_global(const SparseVector& sums, size_t k) {
  const size_t count = sums.count;
  if (exact_)
    state_.global = least_magnitude(sums);
  else
    state_.global = nudged(state_.global, count, k, 2.0 / 3, 4.0 / 3, 1.008f);
  const bool astray = count > 2 * k || 2 * count < k || state_.global == 0;
  state_.k = astray ? 0 : static_cast<uint32_t>(k);
}

float nudged(float threshold, size_t count, size_t k, double least, double most, float factor) {
  const double share = static_cast<double>(count) / static_cast<double>(k);
  if (share > most) return threshold * factor;
  if (share < least) return threshold / factor;
  return threshold;
}

}  // namespace tw
