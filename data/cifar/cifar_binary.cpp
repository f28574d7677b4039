#include "data/cifar/cifar_binary.h"

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "data/wrappers.h"
#include "engine/core/hash.h"

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

constexpr uint8_t kClasses = 10;

/// Images in memory, NHWC.
class CifarImages : public Dataset {
 public:
  explicit CifarImages(size_t size) : pixels_(size * 3 * kCifarPixels), labels_(size) {}

  size_t size() const override { return labels_.size(); }
  int32_t get(size_t i, std::span<uint8_t> pixels) const override {
    check<std::logic_error>(i < size() && pixels.size() == 3 * kCifarPixels,
                            "[cifar] sample {} of {} into {} bytes", i, size(), pixels.size());
    std::memcpy(pixels.data(), &pixels_[i * pixels.size()], pixels.size());
    return labels_[i];
  }
  std::string describe(size_t i) const override {
    const auto pixels = std::span(pixels_).subspan(i * 3 * kCifarPixels, 3 * kCifarPixels);
    return fmt::format("a picture with label {} and checksum {:016x}", labels_[i],
                       checksum(std::as_bytes(pixels)));
  }

  uint8_t* pixels(size_t i) { return &pixels_[i * 3 * kCifarPixels]; }
  uint8_t& label(size_t i) { return labels_[i]; }

 private:
  std::vector<uint8_t> pixels_, labels_;
};

void check_file(const CifarFiles& files, const std::filesystem::path& path, size_t records) {
  std::error_code error;
  const bool present = std::filesystem::is_regular_file(path, error);
  check(present, "[{}] there is no file {}: {}", files.name, path.string(), files.remedy);
  const uintmax_t found = std::filesystem::file_size(path);
  check(found == records * kCifarRecord, "[{}] {} has {} bytes, expected {} ({} records): {}",
        files.name, path.string(), found, records * kCifarRecord, records, files.remedy);
}

/// Reads `records` records of one file to images [first, first + records).
void read_file_into(const CifarFiles& files, const std::filesystem::path& path, size_t records,
                    CifarImages& images, size_t first) {
  check_file(files, path, records);
  std::ifstream in(path, std::ios::binary);
  std::vector<char> record(kCifarRecord);
  for (size_t i = 0; i < records; ++i) {
    in.read(record.data(), static_cast<std::streamsize>(record.size()));
    check(in.good(), "[{}] cannot read {} at record {}", files.name, path.string(), i);
    const auto* bytes = reinterpret_cast<const uint8_t*>(record.data());
    check(bytes[0] < kClasses, "[{}] {} record {} has label {}, expected 0 to {}: {}", files.name,
          path.string(), i, bytes[0], kClasses - 1, files.remedy);
    images.label(first + i) = bytes[0];
    TW_KERNEL(planes_to_nhwc, bytes + 1, images.pixels(first + i));
  }
}

}  // namespace

std::vector<std::filesystem::path> CifarFiles::train() const {
  std::vector<std::filesystem::path> result;
  for (int i = 1; i <= 5; ++i) result.push_back(dir / fmt::format("data_batch_{}.bin", i));
  return result;
}

DataSplit read_cifar_files(const CifarFiles& files, size_t val_size) {
  const std::vector<std::filesystem::path> train = files.train();
  const size_t total = train.size() * files.train_records;
  check(val_size < total, "[{}] val-size is {}, expected less than the {} training images",
        files.name, val_size, total);
  // check all sizes before reading, which takes seconds
  for (const auto& path : train) check_file(files, path, files.train_records);
  if (val_size == 0) check_file(files, files.test(), files.test_records);

  const auto images = std::make_shared<CifarImages>(total);
  for (size_t f = 0; f < train.size(); ++f)
    read_file_into(files, train[f], files.train_records, *images, f * files.train_records);
  if (val_size > 0)
    return {.train = crop_flip(subset(images, 0, total - val_size)),
            .val = subset(images, total - val_size, total),
            .val_name = fmt::format("{} held-out training images", val_size)};

  const auto test = std::make_shared<CifarImages>(files.test_records);
  read_file_into(files, files.test(), files.test_records, *test, 0);
  return {.train = crop_flip(images), .val = test, .val_name = "test file"};
}

std::filesystem::path data_folder(const std::filesystem::path& dir, const std::string& usual) {
  if (dir.empty()) {
    const char* cache = std::getenv("THINWIRE_CACHE");
    return std::filesystem::path(cache != nullptr && *cache != '\0' ? cache : "data-cache") / usual;
  }
  const std::filesystem::path plain = (dir / "").parent_path();  // no slash at the end
  return plain.filename() == usual ? plain : plain / usual;
}

}  // namespace tw
#endif
