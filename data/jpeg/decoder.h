// JpegDecoder: JPEG files in memory to RGB pixels, by libjpeg-turbo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/core/error.h"

namespace tw {

/// A file that is no JPEG, or a damaged one. The text says what is wrong, not which file it is.
class JpegError : public UserError {
 public:
  using UserError::UserError;
};

/// A rectangle of an image, in its pixels.
struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

/// RGB pixels, row by row without padding; they belong to the decoder until its next call.
struct Picture {
  const uint8_t* pixels = nullptr;
  int width = 0, height = 0;
  Box box;  ///< where the wanted part lies in it
};

/// One thread at a time. Memory is kept from file to file.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(JpegDecoder&&) noexcept;

  struct Size {
    int width = 0, height = 0;
  };
  /// Reads the header; `file` must stay valid until decode() is done. JpegError when this is no
  /// whole JPEG file, or one of more than 2^27 pixels, or in scans that fill more than 512 MiB.
  Size open(std::span<const std::byte> file);
  /// Decodes what lies under `part` of the open file (inside the image), at 1/1, 1/2, 1/4 or 1/8 of
  /// its size: the smallest that leaves the part at least `width` x `height` pixels, if any does.
  /// Grayscale and CMYK become RGB. JpegError when the data is damaged.
  Picture decode(const Box& part, int width, int height);

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::vector<uint8_t> pixels_;
};

}  // namespace tw
