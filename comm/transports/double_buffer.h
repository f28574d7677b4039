// Double buffering: processes a long message with two blocks in flight at a time.
#pragma once

#include <cstddef>

#include "comm/blocks.h"

namespace tw {

/// Calls start(j, j % 2) for blocks 0 .. count-1. Calls finish(j, j % 2) for each block once block
/// j + 1 has been started. Two buffers are enough for any number of blocks.
template <class Start, class Finish>
void double_buffered(size_t count, const Start& start, const Finish& finish) {
  for (size_t j = 0; j <= count && count > 0; ++j) {
    if (j < count) start(j, static_cast<int>(j % 2));
    if (j > 0) finish(j - 1, static_cast<int>((j - 1) % 2));
  }
}

}  // namespace tw
