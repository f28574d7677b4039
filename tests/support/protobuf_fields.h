// ProtobufFields: a message of protocol buffers, decoded without the code that writes it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tw::test {

/// The fields of an encoded message by number: text of length-delimited fields, numbers as text.
struct ProtobufFields {
  explicit ProtobufFields(std::string_view bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const auto varint = [&] {
        uint64_t value = 0;
        for (int shift = 0;; shift += 7) {
          const auto byte = static_cast<uint8_t>(bytes.at(at++));
          value |= uint64_t{byte & 0x7fu} << shift;
          if (byte < 0x80) return value;
        }
      };
      const uint64_t tag = varint();
      const int field = static_cast<int>(tag >> 3);
      if ((tag & 7) == 0) {
        all[field].push_back(std::to_string(static_cast<int64_t>(varint())));
        continue;
      }
      const unsigned kind = tag & 7;
      const size_t length = kind == 1 ? 8 : kind == 5 ? 4 : varint();
      all[field].emplace_back(bytes.substr(at, length));
      EXPECT_EQ(all[field].back().size(), length) << "field " << field << " is cut off";
      at += length;
    }
  }
  const std::vector<std::string>& operator[](int field) const {
    static const std::vector<std::string> none;
    const auto found = all.find(field);
    return found == all.end() ? none : found->second;
  }
  std::string text(int field) const { return (*this)[field].empty() ? "" : (*this)[field][0]; }

  std::map<int, std::vector<std::string>> all;
};

}  // namespace tw::test
