#include "sparsify/kernels/floyd_sample.h"

#include <algorithm>

namespace tw {

void RandomSubset::draw(const FloydSample& sample) {
  words_ = (sample.n + 63) / 64;
  if (bits_.size() < words_) bits_.resize(words_);
  std::fill_n(bits_.begin(), words_, uint64_t{0});

  Philox::Block block{};
  for (size_t i = 0; i < sample.k; ++i) {
    if (i % 2 == 0) block = sample.block(i);
    if (!insert(sample.draw(i, block))) insert(sample.last(i));
  }
}

}  // namespace tw
