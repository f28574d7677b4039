// Floyd's sample of k of n positions (Bentley and Floyd, CACM 30(9), 1987), draw by draw: in order,
// or each draw on its own.
//   for i in [0, k):  a = uniform in [0, n - k + i];  add a, or n - k + i where a is there already
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/core/rng.h"

namespace tw {

struct Floyd {
  Philox philox;
  uint64_t id;
  size_t n, k;  ///< k <= n < 2^32

  /// Added where draw i is there already.
  constexpr size_t last(size_t i) const { return n - k + i; }
  /// The random words of draw i, which i ^ 1 shares.
  constexpr Philox::Block block(size_t i) const { return philox(id, static_cast<uint32_t>(i / 2)); }
  /// 64 bits a draw: with 32, some positions of a long vector would be likelier by a per cent.
  constexpr size_t draw(size_t i, const Philox::Block& block) const {
    const uint64_t high = block[i % 2 * 2], low = block[i % 2 * 2 + 1], bound = last(i) + 1;
    return static_cast<size_t>((high * bound + (low * bound >> 32)) >> 32);
  }

  constexpr size_t draw(size_t i) const { return draw(i, block(i)); }

  /// Whether what draw i found is there already; first(a) is the first draw that found a. A
  /// position is there when an earlier draw found it, or when it was added in place of such a one:
  /// a chain that goes on with probability k / n.
  template <class First>
  constexpr bool repeats(size_t i, const First& first) const {
    while (true) {
      const size_t a = draw(i);
      if (first(a) < i) return true;
      if (a < n - k || a - (n - k) >= i) return false;
      i = a - (n - k);
    }
  }
};

}  // namespace tw
