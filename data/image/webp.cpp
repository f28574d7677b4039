// WebP files, with libwebp.
#include <webp/decode.h>
#include <webp/demux.h>

#include "data/image/decoder.h"

namespace tw {

namespace {

void check_webp(VP8StatusCode status) {
  check<ImageError>(status != VP8_STATUS_NOT_ENOUGH_DATA && status != VP8_STATUS_SUSPENDED,
                    "cut short: its data ends too early");
  check<ImageError>(status == VP8_STATUS_OK, "its WebP data is damaged");
}

class WebpDecoder : public FormatDecoder {
 public:
  ImageSize open(std::span<const std::byte> file) override;
  std::span<const std::byte> exif() override;
  /// Decodes the whole image.
  Picture decode(const Box& part, int width, int height) override;

 private:
  const uint8_t* bytes() const { return reinterpret_cast<const uint8_t*>(file_.data()); }

  std::span<const std::byte> file_;
  WebPBitstreamFeatures features_{};
  std::vector<uint8_t> pixels_;
};

ImageSize WebpDecoder::open(std::span<const std::byte> file) {
  file_ = file;
  check_webp(WebPGetFeatures(bytes(), file.size(), &features_));
  check<ImageError>(features_.has_animation == 0, "an animated WebP file; expected a single image");
  return {features_.width, features_.height};
}

std::span<const std::byte> WebpDecoder::exif() {
  const WebPData all{bytes(), file_.size()};
  const std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)> demuxer(WebPDemux(&all),
                                                                         &WebPDemuxDelete);
  WebPChunkIterator chunk{};
  if (!demuxer || WebPDemuxGetChunk(demuxer.get(), "EXIF", 1, &chunk) == 0) return {};
  return std::as_bytes(std::span(chunk.chunk.bytes, chunk.chunk.size));  // part of the file
}

Picture WebpDecoder::decode(const Box& part, int, int) {
  const bool transparent = features_.has_alpha != 0;
  const size_t channels = transparent ? 4 : 3;
  const size_t stride = static_cast<size_t>(features_.width) * channels;
  const size_t size = stride * static_cast<size_t>(features_.height);
  if (pixels_.size() < size) pixels_.resize(size);
  WebPDecoderConfig config;
  check<Fault>(WebPInitDecoderConfig(&config) != 0, "[webp] libwebp is of another version");
  config.output.colorspace = transparent ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {pixels_.data(), static_cast<int>(stride), size};
  check_webp(WebPDecode(bytes(), file_.size(), &config));
  if (transparent) lay_on_white(std::span(pixels_).first(size));
  return {pixels_.data(), features_.width, features_.height, part};
}

const bool webp_registered = image_formats().add(
    {"webp",
     "WebP",
     {.recognises =
          [](std::string_view file) {
            return file.starts_with("RIFF") && file.substr(0, 12).ends_with("WEBP");
          },
      .extensions = {".webp"},
      .make = []() -> std::unique_ptr<FormatDecoder> { return std::make_unique<WebpDecoder>(); }}});

}  // namespace

}  // namespace tw
