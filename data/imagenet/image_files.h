// Image files on the disk, and those that a user names.
#pragma once

#include "data/imagenet/image_dataset.h"
#include "data/tally.h"

namespace tw {

/// Largest accepted file. A larger one is hardly an image, and each loader thread would need as
/// much memory.
inline constexpr uint64_t kMostImageBytes = uint64_t{256} << 20;
/// ImageError when `bytes` is above kMostImageBytes.
void check_image_bytes(uint64_t bytes);

/// Image files on the disk by name().
class FileSource : public ImageSource {
 public:
  uint64_t bytes(size_t i) const override;
  std::span<const std::byte> read(size_t i, std::vector<std::byte>& buffer) const override;
};

/// Image files without labels.
class ImageFiles : public FileSource {
 public:
  /// Files in the order given; for a folder, the images in it and below. UserError when one does
  /// not exist, or a folder has no images.
  explicit ImageFiles(const std::vector<std::string>& paths);

  size_t size() const override { return files_.size(); }
  int32_t label(size_t) const override { return 0; }
  std::string name(size_t i) const override { return files_[i]; }
  std::string relative_name(size_t i) const override { return files_[i]; }

  /// What is not read of the folders, by reason.
  const Tally& left_out() const { return left_out_; }

 private:
  std::vector<std::string> files_;
  Tally left_out_;
};

}  // namespace tw
