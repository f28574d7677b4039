// ImageDecoder: decodes image files in memory to RGB pixels. It recognises the format by content;
// each format registers itself in its own source file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/registry.h"

namespace tw {

/// A file is not an image of a known format, or damaged. The text is the reason; it does not name
/// the file.
class ImageError : public UserError {
 public:
  using UserError::UserError;
};

/// A rectangle of an image, in its pixels.
struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

struct ImageSize {
  int width = 0, height = 0;
};

/// RGB pixels in rows without padding, valid until the next call of the decoder.
struct Picture {
  const uint8_t* pixels = nullptr;
  int width = 0, height = 0;
  Box box;  ///< the requested part, in these pixels
};

/// Decodes files of one format. Not thread-safe. Reuses its memory from file to file.
class FormatDecoder {
 public:
  virtual ~FormatDecoder() = default;
  /// Reads the header; `file` must stay valid until decode() returns. ImageError when the file is
  /// damaged.
  virtual ImageSize open(std::span<const std::byte> file) = 0;
  /// The EXIF data of the open file, with or without the six bytes `Exif\0\0` before them; empty:
  /// none.
  virtual std::span<const std::byte> exif() = 0;
  /// Decodes the rectangle `part` of the open file, and perhaps more of the image around it; at a
  /// smaller scale only if the part still has at least `width` x `height` pixels. Transparent
  /// pixels are laid on white. ImageError when the data is damaged.
  virtual Picture decode(const Box& part, int width, int height) = 0;
};

struct ImageFormat {
  bool (*recognises)(std::string_view file);
  std::vector<std::string> extensions;  ///< of file names, in lower case
  std::unique_ptr<FormatDecoder> (*make)();
};
/// The help text of an entry is the name of the format for messages.
Registry<ImageFormat>& image_formats();

/// Lays pixels of four bytes, the last one their opacity, on white: three bytes each, in place.
/// Rounds to the nearest.
void lay_on_white(std::span<uint8_t> rgba);

/// Not thread-safe. Reuses its memory from file to file.
class ImageDecoder {
 public:
  /// Reads the header and returns the size in pixels; `file` must stay valid until decode()
  /// returns. `upright`: size and pixels are those of the image turned and mirrored as its EXIF
  /// orientation says; else of the image as stored. ImageError when the file is damaged, of an
  /// unknown format, or has more than 2^27 pixels.
  ImageSize open(std::span<const std::byte> file, bool upright = false);
  /// See FormatDecoder::decode; the part must be inside the image.
  Picture decode(const Box& part, int width, int height);
  /// The EXIF orientation of the open file, 1 to 8; 1 if it has none.
  int orientation() const { return orientation_; }

 private:
  std::map<std::string_view, std::unique_ptr<FormatDecoder>> decoders_;  // those used so far
  FormatDecoder* current_ = nullptr;
  ImageSize stored_;
  int orientation_ = 1, turn_ = 1;  // turn_: the orientation that decode() applies
  std::vector<uint8_t> turned_;
};

}  // namespace tw
