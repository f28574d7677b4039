// Hashes to compare layouts, weights and files; not for security.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tw {

/// FNV-1a, 64 bits.
class Hash {
 public:
  Hash& add(std::span<const std::byte> bytes) {
    for (const std::byte b : bytes) value_ = (value_ ^ static_cast<uint64_t>(b)) * 0x100000001b3ull;
    return *this;
  }
  Hash& add(std::span<const float> values) { return add(std::as_bytes(values)); }
  Hash& add(std::span<float> values) { return add(std::as_bytes(values)); }
  Hash& add(std::string_view text) {
    return add(std::as_bytes(std::span<const char>(text.data(), text.size())));
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325ull;
};

/// 64-bit checksum of file contents, eight bytes at a time.
uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace tw
