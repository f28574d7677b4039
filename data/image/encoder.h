// Encodes RGB pixels as a JPEG file in memory, with libjpeg-turbo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tw {

/// `rgb`: width * height * 3 bytes in rows; `quality`: 1 to 100. An EXIF orientation other than 1
/// is written to the file; the pixels are not turned. UserError when an argument is out of range.
std::vector<std::byte> encode_jpeg(std::span<const uint8_t> rgb, int width, int height, int quality,
                                   int orientation = 1);

}  // namespace tw
