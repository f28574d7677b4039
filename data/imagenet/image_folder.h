// ImageFolder: image files in one folder per class.
#pragma once

#include <filesystem>

#include "data/imagenet/image_files.h"
#include "data/tally.h"

namespace tw {

/// Classes are sorted by name, files by class, then by folder below that of the class and by name,
/// byte by byte: the same on every machine, and the order of torchvision's ImageFolder. Links are
/// followed. Leaves out hidden files and folders, files with an extension that is not that of one
/// of image_formats(), and links to a folder that they are in.
class ImageFolder : public FileSource {
 public:
  /// UserError when the folder does not exist or has no classes, a class has no files, or there are
  /// images outside of class folders.
  explicit ImageFolder(const std::filesystem::path& folder);

  size_t size() const override { return labels_.size(); }
  int32_t label(size_t i) const override { return labels_[i]; }
  std::string name(size_t i) const override;
  std::string relative_name(size_t i) const override;

  const std::vector<std::string>& classes() const { return classes_; }
  /// Files and folders that are not read, by reason.
  const Tally& left_out() const { return left_out_; }

 private:
  void add_class(size_t label);

  std::filesystem::path folder_;
  std::vector<std::string> classes_;
  std::vector<int32_t> labels_;
  std::vector<uint64_t> name_ends_;  // in names_: one block instead of a million strings
  std::string names_;
  Tally left_out_;
};

/// The files of images in a folder and below, and what is left out, as in a class of ImageFolder.
/// `above`: the folder of the data set, which links lead back to; empty: none.
std::vector<std::string> images_below(const std::filesystem::path& folder, Tally& left_out,
                                      const std::filesystem::path& above = {});

struct ImageFolders {
  std::shared_ptr<const ImageFolder> train, val;
  Tally left_out;  ///< of both
};
/// Whether `dir` has folders, none of them train or val, and images in or below one of them.
bool holds_class_folders(const std::filesystem::path& dir);
/// Opens dir/train and dir/val; UserError when their classes differ.
ImageFolders open_image_folders(const std::filesystem::path& dir);

}  // namespace tw
