// The digit passes of the radix search, in the order of the GPU kernels, compared with a sort.
#include "sparsify/kernels/radix_select.h"

#include <gtest/gtest.h>

#include <array>

#include "sparsify/kernels/candidates.h"
#include "tests/support/selection.h"

namespace tw {
namespace {

RadixCut search(std::span<const float> u, size_t k, uint32_t resolution) {
  RadixCut cut{.cut = 0, .wanted = static_cast<uint32_t>(k)};
  for (int pass = 0; pass < RadixDigits::kPasses; ++pass) {
    std::array<uint32_t, RadixDigits::kMostBins> counts{};
    for (float x : u) {
      const uint32_t bits = magnitude_bits(x) & resolution;
      if (cut.matches(bits, pass)) ++counts[RadixDigits::digit(bits, pass)];
    }
    uint32_t bin = static_cast<uint32_t>(RadixDigits::bins(pass)) - 1, above = 0;
    for (; above + counts[bin] < cut.wanted; --bin) above += counts[bin];
    cut.narrow(bin, above, pass);
  }
  return cut;
}

TEST(RadixSearch, FindsTheKLargestLowerIndexFirst) {
  for (const auto& [name, u] : vectors())
    for (const uint32_t resolution : {~0u, ~0u << LogHistogram::kShift})
      for (const size_t k : {size_t{1}, size_t{200}, u.size() / 2, u.size()}) {
        const RadixCut cut = search(u, k, resolution);
        std::vector<uint64_t> keys(u.size());
        for (uint32_t i = 0; i < u.size(); ++i) keys[i] = rank_key(u[i], i, resolution);
        std::ranges::sort(keys, std::greater<>());
        size_t wrong = 0;
        uint32_t taken = 0, above = 0, equal = 0;
        for (uint32_t i = 0; i < u.size(); ++i) {
          const uint32_t bits = magnitude_bits(u[i]) & resolution;
          const bool takes = cut.takes(bits, equal);
          wrong += cut.taken(above, equal) != taken;
          above += bits > cut.cut;
          equal += bits == cut.cut;
          taken += takes;
          wrong += takes != (rank_key(u[i], i, resolution) >= keys[k - 1]);
        }
        EXPECT_EQ(taken, k) << name;
        EXPECT_EQ(wrong, 0u) << name << ", k " << k;
      }
}

TEST(RadixSearch, DigitsCoverEveryBitOfAMagnitude) {
  for (const uint32_t bits :
       {0u, 1u, 0x3ffu, 0x400u, 0xfffffu, 0x100000u, kInfinityBits, ~0u >> 1}) {
    RadixCut cut{.cut = 0, .wanted = 1};
    for (int pass = 0; pass < RadixDigits::kPasses; ++pass)
      cut.narrow(RadixDigits::digit(bits, pass), 0, pass);
    EXPECT_EQ(cut.cut, bits);
  }
}

}  // namespace
}  // namespace tw
