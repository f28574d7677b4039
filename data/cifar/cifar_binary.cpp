#include "data/cifar/cifar_binary.h"

#include <fstream>
#include <utility>

#include "data/class_names.h"
#include "data/memory_images.h"
#include "data/wrappers.h"
#include "engine/io/file.h"

#define TW_KERNELS "data/cifar/cifar_binary.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::TW_CPU {

inline void planes_to_nhwc(const uint8_t* planes, uint8_t* pixels) {
  for (size_t p = 0; p < kCifarPixels; ++p)
    for (size_t c = 0; c < 3; ++c) pixels[3 * p + c] = planes[c * kCifarPixels + p];
}

}  // namespace tw::TW_CPU
#else
namespace tw {

namespace {

void check_file(const CifarFiles& files, const std::filesystem::path& path, size_t records) {
  std::error_code error;
  const std::filesystem::path folder = path.parent_path().parent_path();
  if (!folder.empty()) check_there("data", folder, "; " + files.remedy);
  const bool present = std::filesystem::is_regular_file(path, error);
  check(present, "[{}] there is no file {}: {}", files.name, path.string(), files.remedy);
  const uintmax_t found = std::filesystem::file_size(path);
  check(found == records * files.record_bytes(),
        "[{}] {} has {} bytes, expected {} ({} records): {}", files.name, path.string(), found,
        records * files.record_bytes(), records, files.remedy);
}

/// The images of files with `records` records each.
std::shared_ptr<const Dataset> read_images(const CifarFiles& files,
                                           const std::vector<std::filesystem::path>& paths,
                                           size_t records) {
  std::vector<uint8_t> pixels(paths.size() * records * kCifarImage), labels;
  std::vector<char> record(files.record_bytes());
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    for (size_t i = 0; i < records; ++i) {
      in.read(record.data(), static_cast<std::streamsize>(record.size()));
      check(in.good(), "[{}] cannot read {} at record {}", files.name, path.string(), i);
      const auto* image = reinterpret_cast<const uint8_t*>(record.data()) + files.label_bytes;
      const uint8_t label = image[-1];
      check(label < files.classes, "[{}] {} record {} has label {}, expected 0 to {}: {}",
            files.name, path.string(), i, label, files.classes - 1, files.remedy);
      TW_KERNEL(planes_to_nhwc, image, &pixels[labels.size() * kCifarImage]);
      labels.push_back(label);
    }
  }
  return std::make_shared<MemoryImages>(Shape{32, 32, 3}, files.classes, std::move(pixels),
                                        std::move(labels));
}

}  // namespace

std::vector<std::filesystem::path> CifarFiles::train() const {
  std::vector<std::filesystem::path> result;
  for (const std::string& file : train_names) result.push_back(dir / file);
  return result;
}

DataSplit read_cifar_files(const CifarFiles& files, size_t val_size) {
  // check all sizes before reading, which takes seconds
  for (const auto& path : files.train()) check_file(files, path, files.train_records);
  if (val_size == 0) check_file(files, files.test(), files.test_records);
  DataSplit split =
      split_images(files.name, read_images(files, files.train(), files.train_records), val_size,
                   [&] { return read_images(files, {files.test()}, files.test_records); });
  split.train = crop_flip(split.train);
  return split;
}

std::vector<std::string> class_names_beside(const CifarFiles& files, const std::string& file,
                                            std::vector<std::string> defaults) {
  std::ifstream in(files.dir / file);
  if (!in) return defaults;
  std::vector<std::string> names;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  check(names.size() == defaults.size(), "[{}] {} has {} names; expected {}, one a line",
        files.name, (files.dir / file).string(), names.size(), defaults.size());
  return as_utf8(std::move(names));
}

}  // namespace tw
#endif
