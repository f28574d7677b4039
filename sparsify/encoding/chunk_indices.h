// Ascending indices as positions of 12 bits in chunks of 4,096, as SparseLoCo sends them (arXiv
// 2508.15706), with one bit for each entry and chunk: 13 bits an entry and m / 8 bytes for m
// chunks.
//
// First the low 12 bits of each index, two in 3 bytes, lowest bits first; then for each chunk a 1
// for each of its entries and, before the next chunk, a 0 (the code of Elias 1974 and Fano 1971).
// The last bits of both are padded with zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tw {

inline constexpr int kChunkBits = 12;

/// The most bytes that chunk_encode writes for n indices.
constexpr size_t chunk_bound(size_t n) {
  return n == 0 ? 0 : (n * kChunkBits + 7) / 8 + (n + (size_t{1} << (32 - kChunkBits))) / 8 + 1;
}

/// Writes strictly ascending indices; returns the bytes written.
size_t chunk_encode(std::span<const uint32_t> indices, std::byte* out);

/// Reads indices.size() indices, all below d, from exactly the bytes that chunk_encode wrote. False
/// if the bytes are anything else; never reads beyond them.
bool chunk_decode(std::span<const std::byte> bytes, size_t d, std::span<uint32_t> indices);

/// Bits per index of a subset of the given density.
constexpr double chunk_bits(double density) {
  return kChunkBits + 1 + 1 / (density * (1 << kChunkBits));
}

}  // namespace tw
