// ImageFiles: image files without labels.
#pragma once

#include "data/imagenet/image_dataset.h"
#include "data/tally.h"

namespace tw {

class ImageFiles : public ImageSource {
 public:
  /// Files in the order given; for a folder, the images in it and below. UserError when one does
  /// not exist, or a folder has no images.
  explicit ImageFiles(const std::vector<std::string>& paths);

  size_t size() const override { return files_.size(); }
  int32_t label(size_t) const override { return 0; }
  std::string name(size_t i) const override { return files_[i]; }
  std::string relative_name(size_t i) const override { return files_[i]; }
  uint64_t bytes(size_t i) const override;
  std::span<const std::byte> read(size_t i, std::vector<std::byte>& buffer) const override;

  /// What is not read of the folders, by reason.
  const Tally& left_out() const { return left_out_; }

 private:
  std::vector<std::string> files_;
  Tally left_out_;
};

}  // namespace tw
