#include "sparsify/kernels/random_subset.h"

#include <algorithm>

namespace tw {

void RandomSubset::draw(const Floyd& sample) {
  words_ = (sample.n + 63) / 64;
  if (marks_.size() < words_) marks_.resize(words_);
  std::fill_n(marks_.begin(), words_, uint64_t{0});

  Philox::Block block{};
  for (size_t i = 0; i < sample.k; ++i) {
    if (i % 2 == 0) block = sample.block(i);
    if (!mark(sample.draw(i, block))) mark(sample.last(i));
  }
}

}  // namespace tw
