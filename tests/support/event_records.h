// Reads an event file of TensorBoard without the code that writes it. Checksums are not read;
// TensorBoard checks them in tests/apps/train/program/tensorboard_test.sh.
#pragma once

#include <cstring>

#include "tests/support/protobuf_fields.h"

namespace tw::test {

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
  ProtobufFields histogram{""};
};

/// All values in a file.
inline std::vector<EventValue> event_values(std::string_view file) {
  std::vector<EventValue> values;
  for (size_t at = 0; at + 16 <= file.size();) {
    const auto length = number_of<uint64_t>(std::string(file.substr(at, 8)));
    const ProtobufFields event(file.substr(at + 12, length));
    at += length + 16;
    const ProtobufFields summary(event.text(5));
    for (const std::string& bytes : summary[1]) {
      const ProtobufFields one(bytes);
      values.push_back({.step = event[2].empty() ? 0 : std::stoll(event.text(2)),
                        .name = one.text(1),
                        .scalar = one[2].empty() ? 0 : number_of<float>(one.text(2)),
                        .histogram = ProtobufFields(one.text(5))});
    }
  }
  return values;
}

}  // namespace tw::test
