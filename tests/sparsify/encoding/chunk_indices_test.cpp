// chunk_decode takes exactly the bytes that chunk_encode writes.
#include "sparsify/encoding/chunk_indices.h"

#include <gtest/gtest.h>

#include <vector>

namespace tw {
namespace {

constexpr size_t kElements = 20000;

std::vector<std::byte> encoded(const std::vector<uint32_t>& indices) {
  std::vector<std::byte> bytes(chunk_bound(indices.size()));
  bytes.resize(chunk_encode(indices, bytes.data()));
  return bytes;
}

TEST(ChunkIndices, ComeBack) {
  for (const std::vector<uint32_t>& indices :
       {std::vector<uint32_t>{}, {0}, {19999}, {5, 4095, 4096}, {4095, 12288, 19998, 19999}}) {
    std::vector<uint32_t> read(indices.size());
    EXPECT_TRUE(chunk_decode(encoded(indices), kElements, read));
    EXPECT_EQ(read, indices);
  }
}

TEST(ChunkIndices, BitsOfPaddingAreRefused) {
  const std::vector<std::byte> bytes = encoded({5, 4095, 4096});
  std::vector<uint32_t> read(3);
  // 36 bits of positions in 5 bytes, then 4 in a byte of their own
  for (const auto& [at, bit] : {std::pair{4, 4}, std::pair{4, 7}, std::pair{5, 4}}) {
    std::vector<std::byte> wrong = bytes;
    wrong[at] |= std::byte(1 << bit);
    EXPECT_FALSE(chunk_decode(wrong, kElements, read)) << at << " " << bit;
  }
}

TEST(ChunkIndices, AByteTooManyIsRefused) {
  std::vector<std::byte> bytes = encoded({5, 4095, 4096});
  bytes.push_back(std::byte{0});
  std::vector<uint32_t> read(3);
  EXPECT_FALSE(chunk_decode(bytes, kElements, read));
}

}  // namespace
}  // namespace tw
