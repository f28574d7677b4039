#include "data/memory_images.h"

#include <cstring>
#include <utility>

#include "data/wrappers.h"
#include "engine/core/hash.h"

namespace tw {

MemoryImages::MemoryImages(Shape image_shape, int64_t class_count, std::vector<uint8_t> pixels,
                           std::vector<uint8_t> labels)
    : pixels_(std::move(pixels)), labels_(std::move(labels)) {
  image = image_shape;
  classes = class_count;
  check<std::logic_error>(pixels_.size() == labels_.size() * static_cast<size_t>(image.numel()),
                          "[memory] {} bytes for {} images of {}", pixels_.size(), labels_.size(),
                          image);
}

std::span<const uint8_t> MemoryImages::pixels_of(size_t i) const {
  const auto bytes = static_cast<size_t>(image.numel());
  return std::span(pixels_).subspan(i * bytes, bytes);
}

int32_t MemoryImages::get(size_t i, std::span<uint8_t> pixels) const {
  check<std::logic_error>(i < size() && pixels.size() == static_cast<size_t>(image.numel()),
                          "[memory] sample {} of {} into {} bytes", i, size(), pixels.size());
  std::memcpy(pixels.data(), pixels_of(i).data(), pixels.size());
  return labels_[i];
}

std::string MemoryImages::describe(size_t i) const {
  return fmt::format("a picture with label {} and checksum {:016x}", labels_[i],
                     checksum(std::as_bytes(pixels_of(i))));
}

DataSplit split_images(const std::string& name, std::shared_ptr<const Dataset> train,
                       size_t val_size,
                       const std::function<std::shared_ptr<const Dataset>()>& test) {
  const size_t total = train->size();
  check(val_size < total, "[{}] val-size is {}, expected less than the {} training images", name,
        val_size, total);
  if (val_size == 0) return {.train = std::move(train), .val = test(), .val_name = "test file"};
  return {.train = subset(train, 0, total - val_size),
          .val = subset(train, total - val_size, total),
          .val_name = fmt::format("{} held-out training images", val_size)};
}

}  // namespace tw
