// SparseVector: indices in ascending order and their values, as they travel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tw {

struct SparseVector {
  std::vector<uint32_t> indices;
  std::vector<float> values;
  size_t count = 0;  ///< entries in use; the vectors keep their size, so a step allocates nothing

  /// Makes room for at least `capacity` entries; what is in use is kept.
  void reserve(size_t capacity) {
    if (indices.size() >= capacity) return;
    indices.resize(capacity);
    values.resize(capacity);
  }
  std::span<const uint32_t> index_span() const { return {indices.data(), count}; }
  std::span<const float> value_span() const { return {values.data(), count}; }
};

}  // namespace tw
