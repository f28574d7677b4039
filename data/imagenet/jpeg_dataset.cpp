#include "data/imagenet/jpeg_dataset.h"

#include <algorithm>
#include <utility>

namespace tw {

JpegDataset::JpegDataset(std::shared_ptr<const JpegSource> source, const JpegOptions& options)
    : source_(std::move(source)), options_(options) {
  image = {options.image_size, options.image_size, 3};
  classes = options.classes;
}

template <class Body>
int32_t JpegDataset::with_worker(size_t i, std::span<uint8_t> pixels, const Body& body) const {
  check<std::logic_error>(i < size() && pixels.size() == static_cast<size_t>(image.numel()),
                          "[imagefolder] sample {} of {} into {} bytes", i, size(), pixels.size());
  std::unique_ptr<Worker> worker;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      worker = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!worker) worker = std::make_unique<Worker>();
  int32_t label = source_->label(i);
  try {
    body(*worker);
  } catch (const JpegError& error) {
    if (!options_.skip_bad) fail("[imagefolder] {}: {}", source_->name(i), error.what());
    complain(i, error.what());
    std::ranges::fill(pixels, uint8_t{0});
    label = -1;
  }
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(worker));
  return label;
}

int32_t JpegDataset::get(size_t i, std::span<uint8_t> pixels) const {
  return with_worker(i, pixels, [&](Worker& w) {
    const auto size = static_cast<int>(options_.image_size);
    const JpegDecoder::Size whole = w.decoder.open(source_->read(i, w.file));
    const Box box = centre_crop(whole.width, whole.height, (size * 256 + 112) / 224, size);
    w.resampler.run(w.decoder.decode(box, size, size), size, size, false, pixels);
  });
}

int32_t JpegDataset::get_augmented(size_t i, uint64_t seed, uint32_t epoch, std::span<uint8_t>,
                                   std::span<uint8_t> pixels) const {
  return with_worker(i, pixels, [&](Worker& w) {
    const auto size = static_cast<int>(options_.image_size);
    const JpegDecoder::Size whole = w.decoder.open(source_->read(i, w.file));
    const RandomCrop crop = random_resized_crop(whole.width, whole.height, seed, epoch, i);
    w.resampler.run(w.decoder.decode(crop.box, size, size), size, size, crop.mirror, pixels);
    if (options_.colour_jitter > 0) colour_jitter(pixels, options_.colour_jitter, seed, epoch, i);
  });
}

void JpegDataset::complain(size_t i, const char* what) const {
  const std::lock_guard lock(mutex_);
  if (bad_.insert(i).second) complaints_.push_back(fmt::format("{}: {}", source_->name(i), what));
}

std::vector<std::string> JpegDataset::take_complaints() const {
  const std::lock_guard lock(mutex_);
  return std::exchange(complaints_, {});
}

}  // namespace tw
