// Ascending indices as Rice-coded gaps (Rice and Plaunt 1971): for gaps of mean m, about
// log2(e m) + 0.1 bits each, which is all but the entropy of k places chosen at random.
//
// Blocks of 128 entries. A block: 5 bits r, then each gap g (to the index before it, less one): its
// quotient g >> r in unary (that many 0, then 1) and its low r bits. A quotient of 20 or more is
// written as 20 zeros and a 1, and the gap behind it in 32 bits. Lowest bits first; the last byte
// is filled with zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tw {

/// Bytes that rice_encode needs room for, at most, for n indices.
constexpr size_t rice_bound(size_t n) { return n * 7 + n / 128 + 16; }

/// Writes strictly ascending indices; returns the bytes written.
size_t rice_encode(std::span<const uint32_t> indices, std::byte* out);

/// Reads indices.size() of them, all below d, from exactly the bytes that rice_encode wrote.
/// False when the bytes say anything else; never reads beyond them.
bool rice_decode(std::span<const std::byte> bytes, size_t d, std::span<uint32_t> indices);

/// Bits an entry takes when a share `density` of all places is chosen at random.
double rice_bits(double density);

}  // namespace tw
