#include "data/image/encoder.h"

#include <cstdlib>
#include <string_view>

#include "data/image/exif.h"
#include "data/image/libjpeg.h"
#include "engine/core/error.h"

namespace tw {

namespace {

/// With valid arguments only an allocation can fail; libjpeg's default handler then ends the
/// program.
unsigned char* compress(const unsigned char* rgb, int width, int height, int quality,
                        std::string_view exif, unsigned long& bytes) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* out = nullptr;
  jpeg_mem_dest(&info, &out, &bytes);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  if (!exif.empty())
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif.data()),
                      static_cast<unsigned>(exif.size()));
  const size_t stride = static_cast<size_t>(width) * 3;
  for (size_t y = 0; y < static_cast<size_t>(height); ++y) {
    auto* row = const_cast<unsigned char*>(rgb + y * stride);  // libjpeg does not write to it
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  return out;
}

}  // namespace

std::vector<std::byte> encode_jpeg(std::span<const uint8_t> rgb, int width, int height, int quality,
                                   int orientation) {
  check(width >= 1 && height >= 1 && width < 65500 && height < 65500 && quality >= 1 &&
            quality <= 100 && rgb.size() == static_cast<size_t>(width) * height * 3,
        "[jpeg] cannot encode {} x {} pixels at quality {}", width, height, quality);
  unsigned long bytes = 0;
  unsigned char* const memory = compress(rgb.data(), width, height, quality,
                                         orientation == 1 ? "" : exif_of(orientation), bytes);
  const auto* begin = reinterpret_cast<const std::byte*>(memory);
  std::vector<std::byte> result(begin, begin + bytes);
  std::free(memory);
  return result;
}

}  // namespace tw
