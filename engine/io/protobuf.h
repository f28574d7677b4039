// ProtobufMessage: the encoding of protocol buffers, as far as ONNX and event files need it.
// https://protobuf.dev/programming-guides/encoding
#pragma once

#include <bit>
#include <cstdint>
#include <span>
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
    fixed(&value, sizeof value);
  }
  void real(int field, double value) {
    tag(field, 1);
    fixed(&value, sizeof value);
  }
  /// A packed repeated field.
  void reals(int field, std::span<const double> values) {
    tag(field, 2);
    varint(values.size_bytes());
    fixed(values.data(), values.size_bytes());
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
  static_assert(std::endian::native == std::endian::little);
  // wire types: 0 integer, 1 double, 2 bytes, 5 float
  void tag(int field, unsigned wire_type) { varint(static_cast<uint64_t>(field) << 3 | wire_type); }
  void fixed(const void* value, size_t size) {
    bytes_.append(static_cast<const char*>(value), size);
  }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace tw
