#include "apps/bench/libjpeg_baseline.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csetjmp>
#include <cstdint>
#include <exception>
#include <thread>

#include "data/image/libjpeg.h"
#include "engine/core/error.h"
#include "engine/core/stopwatch.h"

namespace tw {

namespace {

/// Where libjpeg's error handler jumps to; client_data points to it.
struct Exit {
  std::jmp_buf jump{};
  char message[JMSG_LENGTH_MAX] = {};
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* exit = static_cast<Exit*>(info->client_data);
  info->err->format_message(info, exit->message);
  std::longjmp(exit->jump, 1);
}

void ignore_warning(j_common_ptr, int) {}

/// Decoder of one thread.
class BareDecoder {
 public:
  explicit BareDecoder(int side) : side_(static_cast<size_t>(side)), resized_(3 * side_ * side_) {
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = &exit_;
    jpeg_create_decompress(&info_);
    errors_.error_exit = leave;
    errors_.emit_message = ignore_warning;
  }
  ~BareDecoder() { jpeg_destroy_decompress(&info_); }
  BareDecoder(const BareDecoder&) = delete;
  BareDecoder& operator=(const BareDecoder&) = delete;

  void run(const std::string& path) {
    const size_t bytes = read(path);
    check(decode(bytes), "[bench] {}: {}", path, exit_.message);
    resize();
  }

 private:
  /// Reads a file into file_ and returns its size.
  size_t read(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    size_t bytes = 0;
    for (ssize_t got; (got = ::read(file, file_.data() + bytes, file_.size() - bytes)) > 0;) {
      bytes += static_cast<size_t>(got);
      if (bytes == file_.size()) file_.resize(2 * bytes);
    }
    ::close(file);
    return bytes;
  }

  /// False when libjpeg reports an error.
  bool decode(size_t bytes) {
    if (setjmp(exit_.jump) != 0) return false;
    jpeg_mem_src(&info_, file_.data(), bytes);
    jpeg_read_header(&info_, TRUE);
    info_.out_color_space = info_.num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&info_);
    stride_ = size_t{info_.output_width} * static_cast<size_t>(info_.output_components);
    if (pixels_.size() < stride_ * info_.output_height)
      pixels_.resize(stride_ * info_.output_height);
    while (info_.output_scanline < info_.output_height) {
      unsigned char* row = pixels_.data() + stride_ * info_.output_scanline;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  /// Bilinear between the four nearest pixels at any scale: the cheapest resize, so that the
  /// baseline is a lower bound.
  void resize() {
    const size_t width = info_.output_width, height = info_.output_height;
    const auto channels = static_cast<size_t>(info_.output_components);
    const size_t step_x = ((width - 1) << 16) / side_, step_y = ((height - 1) << 16) / side_;
    const size_t right = width > 1 ? channels : 0, below = height > 1 ? stride_ : 0;
    uint8_t* out = resized_.data();
    for (size_t y = 0; y < side_; ++y) {
      const size_t at_y = y * step_y, part_y = at_y >> 8 & 255;
      const uint8_t* row = pixels_.data() + (at_y >> 16) * stride_;
      for (size_t x = 0; x < side_; ++x) {
        const size_t at_x = x * step_x, part_x = at_x >> 8 & 255;
        const uint8_t* in = row + (at_x >> 16) * channels;
        for (size_t c = 0; c < 3; ++c, ++in) {
          const size_t upper = in[0] * (256 - part_x) + in[right] * part_x;
          const size_t lower = in[below] * (256 - part_x) + in[below + right] * part_x;
          *out++ = static_cast<uint8_t>((upper * (256 - part_y) + lower * part_y) >> 16);
        }
      }
    }
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  Exit exit_{};
  std::vector<unsigned char> file_ = std::vector<unsigned char>(1 << 20);
  std::vector<uint8_t> pixels_;
  size_t stride_ = 0, side_;
  std::vector<uint8_t> resized_;
};

}  // namespace

double libjpeg_images_per_second(const std::vector<std::string>& files, int side, int threads) {
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> errors(static_cast<size_t>(threads));
  Stopwatch watch;
  std::vector<std::jthread> pool;
  for (std::exception_ptr& error : errors)
    pool.emplace_back([&] {
      try {
        BareDecoder decoder(side);
        for (size_t i; (i = next++) < files.size();) decoder.run(files[i]);
      } catch (...) {
        error = std::current_exception();
      }
    });
  pool.clear();  // joins
  const double seconds = watch.total();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return static_cast<double>(files.size()) / seconds;
}

}  // namespace tw
