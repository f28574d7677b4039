// SparseVector: ascending indices and their values, in host memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace tw {

/// A sparse vector in memory of another owner.
struct SparseView {
  std::span<const uint32_t> indices;
  std::span<const float> values;
};

struct SparseVector {
  std::vector<uint32_t> indices;
  std::vector<float> values;
  size_t count = 0;  ///< entries in use; the vectors keep their size, so a step allocates nothing

  size_t capacity() const { return indices.size(); }
  /// Makes room for at least `capacity` entries and keeps those in use. Grows by at least half, so
  /// that counts that vary a little from step to step soon allocate nothing.
  void reserve(size_t capacity) {
    if (indices.size() >= capacity) return;
    capacity = std::max(capacity, indices.size() + indices.size() / 2);
    indices.resize(capacity);
    values.resize(capacity);
  }
  /// Appends an entry; needs room for it.
  void push(uint32_t index, float value) {
    indices[count] = index;
    values[count++] = value;
  }
  /// Removes the entries from `first` on whose value is 0.
  void drop_zeros(size_t first = 0) {
    uint32_t zeros = 0;  // counted first, by vectors: most selections have none
    for (size_t i = first; i < count; ++i) zeros += values[i] == 0;
    if (zeros == 0) return;
    size_t kept = first;
    for (size_t i = first; i < count; ++i) {
      indices[kept] = indices[i];
      values[kept] = values[i];
      kept += values[i] != 0;
    }
    count = kept;
  }
  SparseView view() const { return {index_span(), value_span()}; }
  std::span<const uint32_t> index_span() const { return {indices.data(), count}; }
  std::span<const float> value_span() const { return {values.data(), count}; }
};

}  // namespace tw
