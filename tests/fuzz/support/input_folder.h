// The input of a fuzzer as a file in a folder of its own, for readers that take a folder.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace tw::fuzz {

class InputFolder {
 public:
  /// In memory if there is such a file system. Removed at the end; a crash leaves it behind.
  explicit InputFolder(const std::string& name) {
    const std::filesystem::path memory = "/dev/shm";
    const auto base =
        std::filesystem::exists(memory) ? memory : std::filesystem::temp_directory_path();
    std::string path = (base / ("fuzz." + name + ".XXXXXX")).string();
    if (::mkdtemp(path.data()) == nullptr) std::abort();
    path_ = path;
  }
  ~InputFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  InputFolder(const InputFolder&) = delete;
  InputFolder& operator=(const InputFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& file, std::string_view bytes) const {
    std::ofstream(path_ / file, std::ios::binary) << bytes;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace tw::fuzz
