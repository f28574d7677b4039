// Scratch memory for tests of ops, and relative errors.
#pragma once

#include <algorithm>

#include "tests/support/owned_tensor.h"

namespace tw::test {

/// ||a - b|| / ||b||
inline double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return a.size() == b.size() ? std::sqrt(difference / norm) : INFINITY;
}

/// Gives a context `bytes` of scratch, filled with NaN, during its lifetime; fails the test after a
/// write past the end.
class Scratch {
 public:
  Scratch(Context& ctx, size_t bytes)
      : memory_({static_cast<int64_t>(bytes + kFence)}, DType::u8), bytes_(bytes) {
    std::vector<std::byte> marked(bytes + kFence, std::byte{0xff});
    std::fill_n(marked.begin() + static_cast<std::ptrdiff_t>(bytes), kFence, kMark);
    memory_.set_bits(marked);
    ctx.set_scratch({static_cast<std::byte*>(memory_->data), bytes});
  }
  ~Scratch() {
    const std::vector<std::byte> now = memory_.bits();
    EXPECT_EQ(std::count(now.begin() + static_cast<std::ptrdiff_t>(bytes_), now.end(), kMark),
              kFence)
        << "a write past the end of the scratch";
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

 private:
  static constexpr size_t kFence = 4096;
  static constexpr std::byte kMark{0xa5};
  OwnedTensor memory_;
  size_t bytes_;
};

}  // namespace tw::test
