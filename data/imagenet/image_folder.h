// ImageFolder: JPEG files in one folder per class.
#pragma once

#include <filesystem>

#include "data/imagenet/jpeg_dataset.h"

namespace tw {

/// Classes are sorted by name, files by class and name, byte by byte: the same on every machine.
/// Ignores files whose names begin with a dot and, outside of class folders, files without the
/// extension of an image.
class ImageFolder : public JpegSource {
 public:
  /// UserError when the folder does not exist or has no classes, a class has no files, or there are
  /// images outside of class folders.
  explicit ImageFolder(const std::filesystem::path& folder);

  size_t size() const override { return labels_.size(); }
  int32_t label(size_t i) const override { return labels_[i]; }
  std::string name(size_t i) const override;
  std::span<const std::byte> read(size_t i, std::vector<std::byte>& buffer) const override;

  const std::vector<std::string>& classes() const { return classes_; }
  /// `class/file` of a sample.
  std::string relative_name(size_t i) const;

 private:
  void add_class(size_t label);

  std::filesystem::path folder_;
  std::vector<std::string> classes_;
  std::vector<int32_t> labels_;
  std::vector<uint64_t> name_ends_;  // in names_: one block instead of a million strings
  std::string names_;
};

/// Largest accepted file. A larger one is hardly an image, and each loader thread would need as
/// much memory.
inline constexpr uint64_t kMostJpegBytes = uint64_t{256} << 20;
/// JpegError when `bytes` is above kMostJpegBytes.
void check_jpeg_bytes(uint64_t bytes);

struct ImageFolders {
  std::shared_ptr<const ImageFolder> train, val;
};
/// Opens dir/train and dir/val; UserError when their classes differ.
ImageFolders open_image_folders(const std::filesystem::path& dir);

}  // namespace tw
