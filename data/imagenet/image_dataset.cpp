#include "data/imagenet/image_dataset.h"

#include <utility>

#include "data/image/resample.h"
#include "engine/core/utf8.h"

namespace tw {

namespace {

/// Working memory of one thread; it holds nothing from one sample to the next.
struct Worker {
  std::vector<std::byte> file;
  ImageDecoder decoder;
  Resampler resampler;
};

}  // namespace

ImageDataset::ImageDataset(std::shared_ptr<const ImageSource> source, const ImageOptions& options)
    : source_(std::move(source)), options_(options) {
  image = {options.image_size, options.image_size, 3};
  classes = options.classes;
}

template <class CropOf>
int32_t ImageDataset::decode(size_t i, std::span<uint8_t> pixels, bool cut,
                             const CropOf& crop_of) const {
  check<std::logic_error>(i < size() && pixels.size() == static_cast<size_t>(image.numel()),
                          "[imagefolder] sample {} of {} into {} bytes", i, size(), pixels.size());
  thread_local Worker worker;
  const auto size = static_cast<int>(options_.image_size);
  try {
    const ImageSize whole =
        worker.decoder.open(source_->read(i, worker.file), options_.exif_orientation);
    const RandomCrop crop = crop_of(whole.width, whole.height);
    const Picture picture = worker.decoder.decode(crop.box, size, size);
    worker.resampler.run(picture, size, size, crop.mirror, pixels, cut);
  } catch (const ImageError& error) {
    const std::string file = source_->relative_name(i);
    throw BadSampleError(kImageFolder, file.substr(0, file.find('/')), source_->name(i),
                         error.what());
  }
  return source_->label(i);
}

std::string ImageDataset::describe(size_t i) const {
  // asking a network disk for the sizes of a million files takes minutes
  constexpr size_t kMostSizes = 4096;
  const bool with_size = i % ((size() - 1) / kMostSizes + 1) == 0;
  return fmt::format("{} with label {}{}", source_->relative_name(i), source_->label(i),
                     with_size ? fmt::format(" and {} bytes", source_->bytes(i)) : "");
}

std::string ImageDataset::name(size_t i) const { return as_utf8(source_->relative_name(i)); }

int32_t ImageDataset::get(size_t i, std::span<uint8_t> pixels) const {
  return decode(i, pixels, false, [&](int width, int height) {
    const auto size = static_cast<int>(options_.image_size);
    const int shorter = options_.crops_border ? (size * 256 + 112) / 224 : size;
    return RandomCrop{.box = centre_crop(width, height, shorter, size)};
  });
}

int32_t ImageDataset::get_augmented(size_t i, uint64_t seed, uint32_t epoch,
                                    std::span<uint8_t> pixels) const {
  const int32_t label = decode(i, pixels, true, [&](int width, int height) {
    return random_resized_crop(width, height, seed, epoch, i);
  });
  if (options_.colour_jitter > 0) colour_jitter(pixels, options_.colour_jitter, seed, epoch, i);
  return label;
}

}  // namespace tw
