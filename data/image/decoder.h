// JpegDecoder: decodes JPEG files in memory to RGB pixels, with libjpeg-turbo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/core/error.h"

namespace tw {

/// A file is not a JPEG, or damaged. The text is the reason; it does not name the file.
class JpegError : public UserError {
 public:
  using UserError::UserError;
};

/// A rectangle of an image, in its pixels.
struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

/// RGB pixels in rows without padding, valid until the next call of the decoder.
struct Picture {
  const uint8_t* pixels = nullptr;
  int width = 0, height = 0;
  Box box;  ///< the requested part, in these pixels
};

/// Not thread-safe. Reuses its memory from file to file.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(JpegDecoder&&) noexcept;

  struct Size {
    int width = 0, height = 0;
  };
  /// Reads the header and returns the size in pixels; `file` must stay valid until decode()
  /// returns. JpegError when the file is not a complete JPEG, has more than 2^27 pixels, or is
  /// progressive and would need more than 512 MiB for its coefficients.
  Size open(std::span<const std::byte> file);
  /// Decodes the rectangle `part` of the open file, which must be inside the image, at scale 1,
  /// 1/2, 1/4 or 1/8: the smallest scale at which the part has at least `width` x `height` pixels,
  /// else 1. Converts grayscale and CMYK to RGB. JpegError when the data is damaged.
  Picture decode(const Box& part, int width, int height);

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::vector<uint8_t> pixels_;
};

}  // namespace tw
