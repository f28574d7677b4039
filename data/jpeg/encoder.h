// RGB pixels to a JPEG file in memory, by libjpeg-turbo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tw {

/// `quality`: 1 to 100.
std::vector<std::byte> encode_jpeg(std::span<const uint8_t> rgb, int width, int height,
                                   int quality);

}  // namespace tw
