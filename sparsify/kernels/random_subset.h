// RandomSubset: k of n positions, every subset equally likely.
#pragma once

#include <cstdint>
#include <vector>

#include "sparsify/kernels/floyd_sample.h"

namespace tw {

/// Floyd's sample: one draw for each position, whatever n is. Positions are marks in a bit set, so
/// they come out in order without a sort: O(k + n / 64).
class RandomSubset {
 public:
  /// Allocates nothing when n is no larger than before.
  void draw(const Floyd& sample);

  /// Calls visit(position) for the positions of the last draw, ascending.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (size_t word = 0; word < words_; ++word)
      for (uint64_t left = marks_[word]; left != 0; left &= left - 1)
        visit(word * 64 + static_cast<size_t>(__builtin_ctzll(left)));
  }

 private:
  /// Sets the mark of `at`; false when it was set.
  bool mark(size_t at) {
    uint64_t& word = marks_[at / 64];
    const uint64_t bit = uint64_t{1} << at % 64, before = word;
    word |= bit;
    return (before & bit) == 0;
  }

  std::vector<uint64_t> marks_;
  size_t words_ = 0;
};

}  // namespace tw
