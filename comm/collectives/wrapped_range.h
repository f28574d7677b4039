// WrappedRange: consecutive chunks of a vector, where the first chunk follows the last.
#pragma once

#include <algorithm>
#include <span>

#include "comm/collectives/common.h"

namespace tw {

/// Of a vector cut into `parts` chunks(): the `count` chunks from, from + 1, ..., modulo parts.
/// They are one or two ranges of memory. count <= parts.
template <class T>
struct WrappedRange {
  std::span<T> first, second;

  WrappedRange(std::span<T> data, int parts, int from, int count) {
    from %= parts;
    const int end = std::min(parts, from + count);
    first = chunks(data, parts, from, end);
    second = chunks(data, parts, 0, from + count - end);
  }

  size_t size() const { return first.size() + second.size(); }
  /// Whether the elements are one range of memory; whole() returns it.
  bool contiguous() const { return first.empty() || second.empty(); }
  std::span<T> whole() const { return first.empty() ? second : first; }
};

}  // namespace tw
