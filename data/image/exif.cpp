#include "data/image/exif.h"

#include <cstdint>
#include <string_view>

namespace tw {

namespace {

constexpr std::string_view kExifPrefix("Exif\0\0", 6);

}  // namespace

int exif_orientation(std::span<const std::byte> exif) {
  std::string_view data(reinterpret_cast<const char*>(exif.data()), exif.size());
  if (data.starts_with(kExifPrefix)) data.remove_prefix(kExifPrefix.size());
  const bool big_endian = data.starts_with("MM");
  if (!big_endian && !data.starts_with("II")) return 1;
  // 0 outside of the data
  const auto number = [&](uint64_t at, uint64_t bytes) {
    uint64_t value = 0;
    for (uint64_t i = 0; i < bytes && at + bytes <= data.size(); ++i)
      value = value << 8 | static_cast<uint8_t>(data[big_endian ? at + i : at + bytes - 1 - i]);
    return value;
  };
  constexpr uint64_t kOrientation = 0x0112, kLong = 4;  // other values have 16 bits
  const uint64_t directory = number(4, 4), entries = number(directory, 2);
  for (uint64_t i = 0; i < entries; ++i) {
    const uint64_t entry = directory + 2 + 12 * i;  // tag, type, count, value
    if (number(entry, 2) != kOrientation) continue;
    const uint64_t value = number(entry + 8, number(entry + 2, 2) == kLong ? 4 : 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

std::string exif_of(int orientation) {
  std::string data(kExifPrefix);
  // big-endian; a directory at offset 8 with one entry: tag, type SHORT, one value; no further one
  for (const int word : {0x4d4d, 42, 0, 8, 1, 0x0112, 3, 0, 1, orientation, 0, 0, 0})
    data += {static_cast<char>(word >> 8), static_cast<char>(word & 255)};
  return data;
}

}  // namespace tw
