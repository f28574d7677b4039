// ImageFolder: a folder of folders of JPEG files, one a class.
#pragma once

#include <filesystem>

#include "data/imagenet/jpeg_dataset.h"

namespace tw {

/// Classes are numbered in the order of their names, files in the order of theirs within a class,
/// byte by byte: the same everywhere. Files whose names begin with a dot are passed over, and so
/// are those beside the classes that have no extension of an image.
class ImageFolder : public JpegSource {
 public:
  /// UserError when there is no such folder, no class in it, a class without files, or images that
  /// lie beside the classes.
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
  std::vector<uint64_t> name_ends_;  // in names_, which holds a million names in one block
  std::string names_;
};

/// A larger file is no photograph, and would fill the memory of every thread that reads it.
inline constexpr uint64_t kMostJpegBytes = uint64_t{256} << 20;
/// JpegError for a file of more.
void check_jpeg_bytes(uint64_t bytes);

/// The folders train and val below `dir`, which must hold the same classes.
struct ImageFolders {
  std::shared_ptr<const ImageFolder> train, val;
};
ImageFolders open_image_folders(const std::filesystem::path& dir);

}  // namespace tw
