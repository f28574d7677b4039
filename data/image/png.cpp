// PNG files, with libspng.
#include <spng.h>

#include "data/image/decoder.h"

namespace tw {

namespace {

/// Limit in bytes of a chunk beside the pixels, and of all together: text may be compressed.
constexpr size_t kMostChunkBytes = size_t{64} << 20;

void check_png(int error) { check<ImageError>(error == SPNG_OK, "{}", spng_strerror(error)); }

class PngDecoder : public FormatDecoder {
 public:
  ImageSize open(std::span<const std::byte> file) override;
  std::span<const std::byte> exif() override;
  /// Decodes the whole image. Takes the upper eight bits of sixteen, as Pillow does.
  Picture decode(const Box& part, int width, int height) override;

 private:
  struct Free {
    void operator()(spng_ctx* context) const { spng_ctx_free(context); }
  };
  std::unique_ptr<spng_ctx, Free> context_;
  spng_ihdr header_{};
  std::vector<uint8_t> pixels_;
};

ImageSize PngDecoder::open(std::span<const std::byte> file) {
  context_.reset(spng_ctx_new(0));
  check<Fault>(context_ != nullptr, "[png] cannot initialise libspng");
  check_png(spng_set_chunk_limits(context_.get(), kMostChunkBytes, kMostChunkBytes));
  check_png(spng_set_png_buffer(context_.get(), file.data(), file.size()));
  check_png(spng_get_ihdr(context_.get(), &header_));
  return {static_cast<int>(header_.width), static_cast<int>(header_.height)};
}

std::span<const std::byte> PngDecoder::exif() {
  spng_exif exif{};
  const int error = spng_get_exif(context_.get(), &exif);
  if (error == SPNG_ECHUNKAVAIL) return {};
  check_png(error);
  return std::as_bytes(std::span(exif.data, exif.length));
}

Picture PngDecoder::decode(const Box& part, int, int) {
  spng_trns ignored{};
  const bool transparent = header_.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA ||
                           header_.color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA ||
                           spng_get_trns(context_.get(), &ignored) == SPNG_OK;
  const size_t bytes = size_t{header_.width} * header_.height * (transparent ? 4 : 3);
  if (pixels_.size() < bytes) pixels_.resize(bytes);
  check_png(spng_decode_image(context_.get(), pixels_.data(), bytes,
                              transparent ? SPNG_FMT_RGBA8 : SPNG_FMT_RGB8,
                              transparent ? SPNG_DECODE_TRNS : 0));
  check_png(spng_decode_chunks(context_.get()));  // to the end of the file, which may be missing
  if (transparent) lay_on_white(std::span(pixels_).first(bytes));
  return {pixels_.data(), static_cast<int>(header_.width), static_cast<int>(header_.height), part};
}

const bool png_registered = image_formats().add(
    {"png",
     "PNG",
     {.recognises = [](std::string_view file) { return file.starts_with("\x89PNG\r\n\x1a\n"); },
      .extensions = {".png"},
      .make = []() -> std::unique_ptr<FormatDecoder> { return std::make_unique<PngDecoder>(); }}});

}  // namespace

}  // namespace tw
