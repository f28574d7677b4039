// What tests of ops with scratch share: scratch memory, and errors relative to the norm.
#pragma once

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

/// Gives a context `bytes` of scratch that live as long as this.
struct Scratch {
  Scratch(Context& ctx, size_t bytes) : buffer(Device::cpu, bytes) {
    ctx.set_scratch(buffer.as<std::byte>());
  }
  Buffer buffer;
};

}  // namespace tw::test
