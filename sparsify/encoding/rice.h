// Ascending indices as Rice-coded gaps (Rice and Plaunt 1971). Gaps of mean m take about
// log2(e m) + 0.1 bits each, close to the entropy of a random subset.
//
// A block has 128 entries: 5 bits r, then a code for each gap g = index - previous index - 1. The
// code is the quotient g >> r in unary (that many 0, then 1) and the low r bits of g. A quotient of
// 20 or more is written as 20 zeros and a 1, followed by the gap in 32 bits. Lowest bits first; the
// last byte is padded with zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tw {

/// The most bytes that rice_encode writes for n indices.
constexpr size_t rice_bound(size_t n) { return n * 7 + n / 128 + 16; }

/// Writes strictly ascending indices; returns the bytes written.
size_t rice_encode(std::span<const uint32_t> indices, std::byte* out);

/// Reads indices.size() indices, all below d, from exactly the bytes that rice_encode wrote. False
/// if the bytes are anything else; never reads beyond them.
bool rice_decode(std::span<const std::byte> bytes, size_t d, std::span<uint32_t> indices);

/// Expected bits per index of a random subset of the given density.
double rice_bits(double density);

}  // namespace tw
