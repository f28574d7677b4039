#include "data/image/decoder.h"

#include <cstring>
#include <utility>

#include "data/image/exif.h"

namespace tw {

namespace {

constexpr double kMostPixels = 1 << 27;

/// The reason why a file of no known format is none.
std::string kind_of(std::string_view file) {
  if (file.empty()) return "an empty file";
  std::string known;
  for (const auto& [name, format] : image_formats().entries())
    known += (known.empty() ? "" : ", ") + format.help;
  const char* kind = file.starts_with("GIF8")  ? "a GIF file"
                     : file.starts_with("BM")  ? "a BMP file"
                     : file.starts_with("II*") ? "a TIFF file"
                                               : "not an image file";
  return fmt::format("{}; expected one of {}", kind, known);
}

// The upright image is the stored one with its columns, its rows or both in reverse order, and then
// rows and columns swapped if the EXIF orientation is 5 or more.
bool swaps(int turn) { return turn >= 5; }
bool mirrors_columns(int turn) { return turn == 2 || turn == 3 || turn == 7 || turn == 8; }
bool mirrors_rows(int turn) { return turn == 3 || turn == 4 || turn == 6 || turn == 7; }

Box swapped(const Box& box) { return {box.y, box.x, box.height, box.width}; }
/// The box in the image with its columns and rows in the other order.
Box mirrored(const Box& box, int turn, int width, int height) {
  return {mirrors_columns(turn) ? width - box.x - box.width : box.x,
          mirrors_rows(turn) ? height - box.y - box.height : box.y, box.width, box.height};
}

}  // namespace

Registry<ImageFormat>& image_formats() {
  static Registry<ImageFormat> registry{"image format"};
  return registry;
}

void lay_on_white(std::span<uint8_t> rgba) {
  uint8_t* out = rgba.data();
  for (size_t i = 0; i < rgba.size(); i += 4)
    for (size_t c = 0; c < 3; ++c) {
      const int opacity = rgba[i + 3];
      *out++ = static_cast<uint8_t>((rgba[i + c] * opacity + 255 * (255 - opacity) + 127) / 255);
    }
}

ImageSize ImageDecoder::open(std::span<const std::byte> file, bool upright) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  current_ = nullptr;
  for (const auto& [name, format] : image_formats().entries()) {
    if (!format.value.recognises(text)) continue;
    auto& decoder = decoders_[name];
    if (!decoder) decoder = format.value.make();
    current_ = decoder.get();
  }
  check<ImageError>(current_ != nullptr, "{}", kind_of(text));
  stored_ = current_->open(file);
  check<ImageError>(static_cast<double>(stored_.width) * stored_.height <= kMostPixels,
                    "{} x {} pixels; at most {:.0f} in all", stored_.width, stored_.height,
                    kMostPixels);
  orientation_ = exif_orientation(current_->exif());
  turn_ = upright ? orientation_ : 1;
  return swaps(turn_) ? ImageSize{stored_.height, stored_.width} : stored_;
}

Picture ImageDecoder::decode(const Box& part, int width, int height) {
  if (turn_ == 1) return current_->decode(part, width, height);
  const bool swap = swaps(turn_);
  const Picture stored =
      current_->decode(mirrored(swap ? swapped(part) : part, turn_, stored_.width, stored_.height),
                       swap ? height : width, swap ? width : height);
  const Box box = mirrored(stored.box, turn_, stored.width, stored.height);
  const Picture turned{.width = swap ? stored.height : stored.width,
                       .height = swap ? stored.width : stored.height,
                       .box = swap ? swapped(box) : box};
  turned_.resize(static_cast<size_t>(turned.width) * static_cast<size_t>(turned.height) * 3);
  uint8_t* out = turned_.data();
  for (int y = 0; y < turned.height; ++y)
    for (int x = 0; x < turned.width; ++x, out += 3) {
      const int along = swap ? y : x, down = swap ? x : y;
      const int column = mirrors_columns(turn_) ? stored.width - 1 - along : along;
      const int row = mirrors_rows(turn_) ? stored.height - 1 - down : down;
      std::memcpy(out, stored.pixels + 3 * (static_cast<ptrdiff_t>(row) * stored.width + column),
                  3);
    }
  return {turned_.data(), turned.width, turned.height, turned.box};
}

}  // namespace tw
