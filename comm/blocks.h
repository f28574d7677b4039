// Cuts long vectors into blocks of one length.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace tw {

inline size_t blocks_in(size_t size, size_t length) { return (size + length - 1) / length; }

/// Block j of `length` elements of data. The last one may be shorter; those after it are empty.
template <class T>
std::span<T> block_of(std::span<T> data, size_t length, size_t j) {
  const size_t begin = std::min(j * length, data.size());
  return data.subspan(begin, std::min(length, data.size() - begin));
}

}  // namespace tw
