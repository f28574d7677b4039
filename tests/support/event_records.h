// Reads an event file of TensorBoard without the code that writes it. Checksums are not read;
// TensorBoard checks them in tests/apps/train/program/tensorboard_test.sh.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tw::test {

/// The fields of a message of protocol buffers: number -> values, each as bytes; an integer as
/// eight bytes.
using Fields = std::multimap<int, std::string>;

inline uint64_t read_varint(std::string_view bytes, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0; at < bytes.size(); shift += 7) {
    value |= static_cast<uint64_t>(bytes[at] & 0x7f) << shift;
    if (!(bytes[at++] & 0x80)) break;
  }
  return value;
}

inline Fields fields_of(std::string_view bytes) {
  Fields found;
  for (size_t at = 0; at < bytes.size();) {
    const uint64_t key = read_varint(bytes, at);
    const int kind = static_cast<int>(key & 7);
    uint64_t length = kind == 1 ? 8 : 4, value = 0;
    if (kind == 0 || kind == 2) length = value = read_varint(bytes, at);
    if (kind == 0) {
      found.emplace(key >> 3, std::string(reinterpret_cast<const char*>(&value), sizeof value));
    } else {
      found.emplace(key >> 3, bytes.substr(at, length));
      at += length;
    }
  }
  return found;
}

template <class T>
T number_of(const std::string& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

inline std::vector<double> numbers_of(const std::string& bytes) {
  std::vector<double> values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// One value of an event.
struct EventValue {
  int64_t step = 0;
  std::string name;
  float scalar = 0;
  Fields histogram;
};

/// All values in a file.
inline std::vector<EventValue> event_values(std::string_view file) {
  std::vector<EventValue> values;
  for (size_t at = 0; at + 16 <= file.size();) {
    const auto length = number_of<uint64_t>(std::string(file.substr(at, 8)));
    const Fields event = fields_of(file.substr(at + 12, length));
    at += length + 16;
    const auto summary = event.find(5), step = event.find(2);
    if (summary == event.end()) continue;
    for (const auto& [field, bytes] : fields_of(summary->second)) {
      const Fields one = fields_of(bytes);
      EventValue value{.step = step == event.end() ? 0 : number_of<int64_t>(step->second),
                       .name = one.find(1)->second,
                       .histogram = {}};
      if (one.contains(2)) value.scalar = number_of<float>(one.find(2)->second);
      if (one.contains(5)) value.histogram = fields_of(one.find(5)->second);
      values.push_back(std::move(value));
    }
  }
  return values;
}

}  // namespace tw::test
