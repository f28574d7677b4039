#include "sparsify/random_subset.h"

#include <algorithm>

namespace tw {

namespace {

/// Uniform in [0, n); bias below n / 2^64.
size_t below(uint64_t bits, size_t n) {
  return static_cast<size_t>((static_cast<unsigned __int128>(bits) * n) >> 64);
}

}  // namespace

void RandomSubset::draw(const Philox& philox, uint64_t id, size_t n, size_t k) {
  words_ = (n + 63) / 64;
  if (marks_.size() < words_) marks_.resize(words_);
  std::fill_n(marks_.begin(), words_, uint64_t{0});

  Philox::Block block{};
  for (size_t i = 0; i < k; ++i) {
    // 64 bits a draw: with 32, some positions of a long vector would be likelier by a per cent
    if (i % 2 == 0) block = philox(id, static_cast<uint32_t>(i / 2));
    const size_t last = n - k + i;
    const size_t at = below(uint64_t{block[i % 2 * 2]} << 32 | block[i % 2 * 2 + 1], last + 1);
    if (!mark(at)) mark(last);
  }
}

}  // namespace tw
