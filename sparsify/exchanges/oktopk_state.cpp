#include "sparsify/exchanges/oktopk_state.h"

#include <algorithm>

namespace tw {

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

}  // namespace tw
