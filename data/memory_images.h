// MemoryImages: a data set whose images are all in memory.
#pragma once

#include <functional>

#include "data/dataset.h"

namespace tw {

class MemoryImages : public Dataset {
 public:
  /// `pixels`: NHWC, the images of `labels` one after the other.
  MemoryImages(Shape image_shape, int64_t class_count, std::vector<uint8_t> pixels,
               std::vector<uint8_t> labels);

  size_t size() const override { return labels_.size(); }
  int32_t get(size_t i, std::span<uint8_t> pixels) const override;
  std::string describe(size_t i) const override;

 private:
  std::span<const uint8_t> pixels_of(size_t i) const;

  std::vector<uint8_t> pixels_, labels_;
};

/// Training images, with those of `test` to validate on. With val_size > 0 the last val_size
/// training images are held out for that instead, and `test` is not called. UserError, with the
/// name of the data set, when no training images are left.
DataSplit split_images(const std::string& name, std::shared_ptr<const Dataset> train,
                       size_t val_size,
                       const std::function<std::shared_ptr<const Dataset>()>& test);

}  // namespace tw
