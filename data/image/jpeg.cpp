// JPEG files, with libjpeg-turbo.
#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstring>
#include <string>
#include <string_view>

#include "data/image/decoder.h"
#include "data/image/libjpeg.h"

namespace tw {

namespace {

/// Limit in bytes of the coefficients that libjpeg keeps for an image with several scans.
constexpr double kMostCoefficientBytes = 512 << 20;
/// Limit of the number of scans: a small file may request many passes over a large image.
constexpr int kMostScans = 200;
constexpr double kMostScanned = 0x1p31;  ///< pixels, in all scans together
constexpr int kExifMarker = JPEG_APP0 + 1;

/// The target of longjmp on an error; client_data of libjpeg points to it.
struct Exit {
  std::jmp_buf jump{};
  char message[JMSG_LENGTH_MAX] = {};
};

/// libjpeg reports errors by longjmp, which must not skip destructors. So each function that calls
/// it holds plain data only, and returns false after an error.
struct JpegState {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  Exit exit{};

  bool create();
  bool read_header(const unsigned char* file, unsigned long bytes);
  bool start(int denominator);
  bool crop(JDIMENSION& x, JDIMENSION& width, JDIMENSION y);
  bool read_rows(unsigned char* out, size_t stride, int rows);
  [[noreturn]] void throw_error();
};

[[noreturn]] void on_error(j_common_ptr info) {
  auto* exit = static_cast<Exit*>(info->client_data);
  info->err->format_message(info, exit->message);
  std::longjmp(exit->jump, 1);
}

/// Treats libjpeg's warnings as errors, because it then invents pixels. The harmless ones are
/// exempt.
void on_message(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  const bool harmless =
      code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM;
  if (level < 0 && !harmless) on_error(info);
}

double pixels_of(const jpeg_decompress_struct& info) {
  return static_cast<double>(info.image_width) * info.image_height;
}

void on_progress(j_common_ptr common) {
  const auto* info = reinterpret_cast<j_decompress_ptr>(common);
  const double most = std::min<double>(kMostScans, kMostScanned / pixels_of(*info));
  if (info->input_scan_number <= most) return;
  auto* exit = static_cast<Exit*>(info->client_data);
  std::snprintf(exit->message, JMSG_LENGTH_MAX, "more than %.0f scans of %u x %u pixels",
                std::floor(most), info->image_width, info->image_height);
  std::longjmp(exit->jump, 1);
}

/// Bytes of all coefficients.
double coefficient_bytes(const jpeg_decompress_struct& info) {
  double blocks = 0;
  for (const auto& part : std::span(info.comp_info, static_cast<size_t>(info.num_components)))
    blocks += static_cast<double>(part.width_in_blocks) * part.height_in_blocks;
  return blocks * sizeof(JBLOCK);
}

void ignore_text(j_common_ptr) {}

bool JpegState::create() {
  info.err = jpeg_std_error(&errors);
  errors.error_exit = on_error;
  errors.emit_message = on_message;
  errors.output_message = ignore_text;
  progress.progress_monitor = on_progress;
  info.client_data = &exit;
  if (setjmp(exit.jump) != 0) return false;
  jpeg_create_decompress(&info);
  jpeg_save_markers(&info, kExifMarker, 0xffff);
  info.progress = &progress;
  return true;
}

bool JpegState::read_header(const unsigned char* file, unsigned long bytes) {
  if (setjmp(exit.jump) != 0) return false;
  jpeg_mem_src(&info, file, bytes);
  jpeg_read_header(&info, TRUE);
  return true;
}

bool JpegState::start(int denominator) {
  if (setjmp(exit.jump) != 0) return false;
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(denominator);
  const bool four = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = four ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&info);
  return true;
}

bool JpegState::crop(JDIMENSION& x, JDIMENSION& width, JDIMENSION y) {
  if (setjmp(exit.jump) != 0) return false;
  jpeg_crop_scanline(&info, &x, &width);
  if (y > 0) jpeg_skip_scanlines(&info, y);
  return true;
}

bool JpegState::read_rows(unsigned char* out, size_t stride, int rows) {
  if (setjmp(exit.jump) != 0) return false;
  for (int row = 0; row < rows; ++row) {
    unsigned char* line = out + static_cast<size_t>(row) * stride;
    jpeg_read_scanlines(&info, &line, 1);
  }
  jpeg_abort_decompress(&info);  // the rows below the part are not needed
  return true;
}

void JpegState::throw_error() {
  jpeg_abort_decompress(&info);
  throw ImageError(exit.message);
}

/// Converts four bytes per pixel to three, in place. Treats the CMYK values as inverted, with or
/// without Adobe's marker, as Pillow does; nearly all CMYK files are.
void cmyk_to_rgb(uint8_t* pixels, size_t count) {
  const auto product = [](int a, int b) { return static_cast<uint8_t>((a * b + 127) / 255); };
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* from = pixels + 4 * i;
    const uint8_t rgb[3] = {product(from[0], from[3]), product(from[1], from[3]),
                            product(from[2], from[3])};
    std::memcpy(pixels + 3 * i, rgb, 3);
  }
}

class JpegDecoder : public FormatDecoder {
 public:
  JpegDecoder() {
    check<Fault>(state_.create(), "[jpeg] cannot initialise libjpeg: {}", state_.exit.message);
  }
  ~JpegDecoder() override { jpeg_destroy_decompress(&state_.info); }
  JpegDecoder(const JpegDecoder&) = delete;

  /// ImageError also when the file is progressive and would need more than 512 MiB for its
  /// coefficients.
  ImageSize open(std::span<const std::byte> file) override;
  std::span<const std::byte> exif() override;
  /// Decodes at scale 1, 1/2, 1/4 or 1/8. Converts grayscale and CMYK to RGB.
  Picture decode(const Box& part, int width, int height) override;

 private:
  JpegState state_;
  std::vector<uint8_t> pixels_;
};

ImageSize JpegDecoder::open(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  check<ImageError>(text.rfind("\xff\xd9") != std::string_view::npos,
                    "cut short: its end marker is missing");
  jpeg_abort_decompress(&state_.info);  // the previous file, if it was opened and not decoded
  const auto* bytes = reinterpret_cast<const unsigned char*>(file.data());
  if (!state_.read_header(bytes, static_cast<unsigned long>(file.size()))) state_.throw_error();
  const jpeg_decompress_struct& info = state_.info;
  const bool fits =
      !jpeg_has_multiple_scans(&state_.info) || coefficient_bytes(info) <= kMostCoefficientBytes;
  check<ImageError>(fits, "{} x {} pixels in several scans, which take {:.0f} MiB; at most {:.0f}",
                    info.image_width, info.image_height, coefficient_bytes(info) / 0x1p20,
                    kMostCoefficientBytes / 0x1p20);
  return {static_cast<int>(info.image_width), static_cast<int>(info.image_height)};
}

std::span<const std::byte> JpegDecoder::exif() {
  for (auto* marker = state_.info.marker_list; marker != nullptr; marker = marker->next) {
    const auto* data = reinterpret_cast<const char*>(marker->data);
    if (std::string_view(data, marker->data_length).starts_with("Exif"))  // else XMP
      return std::as_bytes(std::span(data, marker->data_length));
  }
  return {};
}

Picture JpegDecoder::decode(const Box& part, int width, int height) {
  int denominator = 8;
  while (denominator > 1 &&
         (part.width < width * denominator || part.height < height * denominator))
    denominator /= 2;
  jpeg_decompress_struct& info = state_.info;
  if (!state_.start(denominator)) state_.throw_error();

  // two pixels more than cover the part: chroma is interpolated from neighbours, which are missing
  // at the border of a crop
  // not the ratio of the sizes: the last pixel may stand for fewer than `denominator`
  const double scale = 1.0 / denominator;
  Box box{part.x * scale, part.y * scale, part.width * scale, part.height * scale};
  const auto first = [](double begin) {
    return static_cast<int>(std::max(0.0, std::floor(begin) - 2));
  };
  const auto last = [](double end, JDIMENSION limit) {
    return static_cast<int>(std::min<double>(limit, std::ceil(end) + 2));
  };
  const int top = first(box.y), bottom = last(box.y + box.height, info.output_height);
  auto left = static_cast<JDIMENSION>(first(box.x));
  auto columns = static_cast<JDIMENSION>(last(box.x + box.width, info.output_width)) - left;
  // libjpeg moves `left` to the border of a block
  if (!state_.crop(left, columns, static_cast<JDIMENSION>(top))) state_.throw_error();

  const auto channels = static_cast<size_t>(info.output_components);
  const size_t stride = columns * channels, rows = static_cast<size_t>(bottom - top);
  if (pixels_.size() < stride * rows) pixels_.resize(stride * rows);
  if (!state_.read_rows(pixels_.data(), stride, bottom - top)) state_.throw_error();
  if (channels == 4) cmyk_to_rgb(pixels_.data(), columns * rows);
  box.x -= left;
  box.y -= top;
  return {pixels_.data(), static_cast<int>(columns), bottom - top, box};
}

const bool jpeg_registered = image_formats().add(
    {"jpeg",
     "JPEG",
     {.recognises = [](std::string_view file) { return file.starts_with("\xff\xd8"); },
      .extensions = {".jpg", ".jpeg", ".jpe", ".jfif"},
      .make = []() -> std::unique_ptr<FormatDecoder> { return std::make_unique<JpegDecoder>(); }}});

}  // namespace

}  // namespace tw
