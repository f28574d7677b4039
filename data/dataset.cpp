#include "data/dataset.h"

#include <cstdlib>

namespace tw {

std::string dataset_in(const std::filesystem::path& dir, const std::string& other) {
  for (const auto& [name, entry] : datasets().entries())
    if (entry.value.recognises(dir)) return name;
  return other;
}

std::string dataset_of(const std::filesystem::path& dir) {
  const std::string found = dataset_in(dir, "");
  std::error_code ignored;
  check(!found.empty() || !std::filesystem::is_directory(dir, ignored),
        "[data] {} {}; expected a folder for each class with JPEG, PNG or WebP files, or the "
        "folder of a data set (train --list names them)",
        dir.string(),
        std::filesystem::is_empty(dir, ignored) ? "is empty" : "has no images in class folders");
  return found.empty() ? kCifar10 : found;
}

void check_classes(int64_t classes, const std::filesystem::path& dir) {
  check(classes > 1, "[data] {} has images of one class; expected at least two", dir.string());
}

std::filesystem::path data_folder(const std::filesystem::path& dir, const std::string& usual) {
  if (dir.empty()) {
    const char* cache = std::getenv("THINWIRE_CACHE");
    return std::filesystem::path(cache != nullptr && *cache != '\0' ? cache : "data-cache") / usual;
  }
  const std::filesystem::path plain = (dir / "").parent_path();  // no slash at the end
  return plain.filename() == usual ? plain : plain / usual;
}

std::filesystem::path data_folder_with(const std::string& file, const std::filesystem::path& dir,
                                       const std::string& usual) {
  std::error_code ignored;
  const bool direct = !dir.empty() && std::filesystem::exists(dir / file, ignored);
  return direct ? dir : data_folder(dir, usual);
}

}  // namespace tw
