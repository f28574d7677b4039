#include "data/imagenet/image_files.h"

#include "data/imagenet/image_folder.h"

namespace tw {

namespace fs = std::filesystem;

ImageFiles::ImageFiles(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    std::error_code error;
    check(fs::exists(path, error), "[data] {} does not exist", path);
    if (!fs::is_directory(path, error)) {
      files_.push_back(path);
      continue;
    }
    const std::vector<std::string> names = images_below(path, left_out_);
    check(!names.empty(), "[data] {} has no images", path);
    for (const std::string& name : names) files_.push_back((fs::path(path) / name).string());
  }
}

uint64_t ImageFiles::bytes(size_t i) const {
  std::error_code unknown;
  const uintmax_t size = fs::file_size(files_[i], unknown);
  return unknown ? 0 : size;
}

std::span<const std::byte> ImageFiles::read(size_t i, std::vector<std::byte>& buffer) const {
  return read_image_file(files_[i], buffer);
}

}  // namespace tw
