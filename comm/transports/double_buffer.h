// Long messages in blocks, two of which are under way at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace tw {

/// Block j of `length` elements of data; shorter at its end, empty behind it.
template <class T>
std::span<T> block_of(std::span<T> data, size_t length, size_t j) {
  const size_t begin = std::min(j * length, data.size());
  return data.subspan(begin, std::min(length, data.size() - begin));
}

inline size_t blocks_in(size_t size, size_t length) { return (size + length - 1) / length; }

/// Calls start(j, j % 2) for blocks 0 .. count-1, and finish(j, j % 2) for each when the next one
/// has been started: two places serve any number of blocks.
template <class Start, class Finish>
void double_buffered(size_t count, const Start& start, const Finish& finish) {
  for (size_t j = 0; j <= count && count > 0; ++j) {
    if (j < count) start(j, static_cast<int>(j % 2));
    if (j > 0) finish(j - 1, static_cast<int>((j - 1) % 2));
  }
}

}  // namespace tw
