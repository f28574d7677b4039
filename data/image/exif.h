// The orientation of an image in EXIF data: the tag 0x0112 of its first directory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tw {

/// 1 to 8: how the stored image is turned or mirrored to be upright. 1 (not at all) when the data,
/// with or without the six bytes `Exif\0\0` before them, have no valid orientation.
int exif_orientation(std::span<const std::byte> exif);

/// EXIF data with this orientation and nothing else, with `Exif\0\0` before them.
std::string exif_of(int orientation);

}  // namespace tw
