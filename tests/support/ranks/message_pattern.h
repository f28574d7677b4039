// Messages of any size for tests of transports; they differ in every byte.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "comm/communicator.h"

namespace tw {

inline std::vector<std::byte> pattern(size_t bytes, int seed) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::byte>((i * 31 + static_cast<size_t>(seed) * 7 + i / 251) % 251);
  return data;
}

/// Every rank sends to the next one and receives from the one before, in two rounds per size. Sizes
/// differ between ranks and rounds.
inline void swap_around(Context& ctx, Communicator& comm, std::span<const size_t> sizes) {
  const int right = (comm.rank() + 1) % comm.size();
  const int left = (comm.rank() + comm.size() - 1) % comm.size();
  const auto message = [&](int rank, int round) {
    return pattern(sizes[static_cast<size_t>(rank + 2 * round) % sizes.size()], rank + round);
  };
  std::vector<std::byte> in(std::ranges::max(sizes));
  for (int round = 0; round < 2 * static_cast<int>(sizes.size()); ++round) {
    const auto expected = message(left, round);
    EXPECT_EQ(comm.exchange(ctx, right, message(comm.rank(), round), left, in), expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), in.begin()));
  }
}

}  // namespace tw
