// ProtobufMessage: the encoding of protocol buffers, as far as ONNX files need it.
// https://protobuf.dev/programming-guides/encoding
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace tw {

class ProtobufMessage {
 public:
  /// An integer or an enumeration; negative numbers in two's complement.
  void number(int field, int64_t value) {
    tag(field, 0);
    varint(static_cast<uint64_t>(value));
  }
  void real(int field, float value) {
    tag(field, 5);
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(bits >> shift & 0xff);
  }
  /// Text, bytes or an encoded message.
  void bytes(int field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    bytes_ += value;
  }
  void message(int field, const ProtobufMessage& value) { bytes(field, value.bytes_); }

  const std::string& encoded() const { return bytes_; }

 private:
  void tag(int field, unsigned wire_type) { varint(static_cast<uint64_t>(field) << 3 | wire_type); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace tw
