// Encodes RGB pixels as a JPEG file in memory, with libjpeg-turbo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tw {

/// `rgb`: width * height * 3 bytes in rows; `quality`: 1 to 100. UserError when an argument is out
/// of range.
std::vector<std::byte> encode_jpeg(std::span<const uint8_t> rgb, int width, int height,
                                   int quality);

}  // namespace tw
