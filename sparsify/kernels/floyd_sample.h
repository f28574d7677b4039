// Floyd's sample: k of n positions, every subset equally likely, with one draw per position
// (Bentley and Floyd, CACM 30(9), 1987).
//   for i in [0, k):  a = uniform in [0, n - k + i];  add a, or n - k + i if a is in the set
//   already
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/core/rng.h"

namespace tw {

/// The draws of one sample. They may be evaluated in order (RandomSubset) or each by itself (GPU).
struct FloydSample {
  Philox philox;
  uint64_t id;
  size_t n, k;  ///< k <= n < 2^32

  /// The position that is added if draw i is in the set already.
  constexpr size_t last(size_t i) const { return n - k + i; }
  /// The random words of draws i and i ^ 1.
  constexpr Philox::Block block(size_t i) const { return philox(id, static_cast<uint32_t>(i / 2)); }
  /// Uses 64 random bits. With 32, some positions of a long vector would be one per cent likelier.
  constexpr size_t draw(size_t i, const Philox::Block& block) const {
    const uint64_t high = block[i % 2 * 2], low = block[i % 2 * 2 + 1], bound = last(i) + 1;
    return static_cast<size_t>((high * bound + (low * bound >> 32)) >> 32);
  }

  constexpr size_t draw(size_t i) const { return draw(i, block(i)); }

  /// True if the position a of draw i is in the set already. first(a): the first draw that gave a.
  /// Position a is in the set if an earlier draw gave it, or if a = last(j) and the earlier draw j
  /// repeats. The loop checks the second case; it continues with probability k / n.
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

/// The set of sampled positions as bits, so that they come out in order without a sort:
/// O(k + n / 64).
class RandomSubset {
 public:
  /// Allocates nothing if n is no larger than before.
  void draw(const FloydSample& sample) {
    words_ = (sample.n + 63) / 64;
    if (bits_.size() < words_) bits_.resize(words_);
    std::fill_n(bits_.begin(), words_, uint64_t{0});
    Philox::Block block{};
    for (size_t i = 0; i < sample.k; ++i) {
      if (i % 2 == 0) block = sample.block(i);
      if (!insert(sample.draw(i, block))) insert(sample.last(i));
    }
  }

  /// Calls visit(position) for the positions of the last draw, ascending.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (size_t word = 0; word < words_; ++word)
      for (uint64_t left = bits_[word]; left != 0; left &= left - 1)
        visit(word * 64 + static_cast<size_t>(__builtin_ctzll(left)));
  }

 private:
  /// Adds a position; false if it was in the set.
  bool insert(size_t position) {
    uint64_t& word = bits_[position / 64];
    const uint64_t bit = uint64_t{1} << position % 64, before = word;
    word |= bit;
    return (before & bit) == 0;
  }

  std::vector<uint64_t> bits_;
  size_t words_ = 0;
};

}  // namespace tw
