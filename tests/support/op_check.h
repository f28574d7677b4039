// What tests of ops with scratch share: scratch memory, and errors relative to the norm.
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

/// Gives a context `bytes` of scratch that live as long as this; fails the test when something
/// wrote behind them.
class Scratch {
 public:
  Scratch(Context& ctx, size_t bytes) : buffer_(Device::cpu, bytes + kFence), bytes_(bytes) {
    std::fill_n(buffer_.data() + bytes, kFence, kMark);
    ctx.set_scratch(buffer_.as<std::byte>().first(bytes));
  }
  ~Scratch() {
    const auto fence = buffer_.as<std::byte>().subspan(bytes_);
    EXPECT_EQ(std::count(fence.begin(), fence.end(), kMark), kFence) << "wrote behind the scratch";
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

 private:
  static constexpr size_t kFence = 4096;
  static constexpr std::byte kMark{0xa5};
  Buffer buffer_;
  size_t bytes_;
};

}  // namespace tw::test
