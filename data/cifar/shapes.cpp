// The data set shapes, generated on first use in the format of CIFAR-10.
#include "data/cifar/shapes.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "data/cifar/cifar_binary.h"
#include "engine/io/file.h"

namespace tw {

namespace {

// the version changes when the bytes do
constexpr const char* kShapesFolder = "shapes-v1";
constexpr size_t kRecords = 2'000;  // of each of the six files

/// A new folder inside another; the destructor removes it.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::filesystem::path& inside) {
    std::string name = (inside / "part.XXXXXX").string();
    const bool made = ::mkdtemp(name.data()) != nullptr;  // before errno is read
    check(made, "[shapes] cannot write in {}: {}", inside.string(), std::strerror(errno));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

bool complete(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::file_size(file, error) == kRecords * kCifarRecord && !error;
}

void write_records(const std::filesystem::path& file, uint32_t half, size_t first) {
  std::vector<uint8_t> records(kRecords * kCifarRecord);
  for (size_t i = 0; i < kRecords; ++i) {
    const std::span record = std::span(records).subspan(i * kCifarRecord, kCifarRecord);
    record[0] = static_cast<uint8_t>((first + i) % 10);
    draw_shape(half, first + i, record.subspan(1));
  }
  write_atomically(file, {reinterpret_cast<const char*>(records.data()), records.size()});
}

/// Generates the missing files. Several ranks may do so at once: each writes to a folder of its own
/// and renames file by file, so a reader never sees part of a file, and the last rename replaces a
/// file by the same bytes.
void generate(const CifarFiles& files) {
  std::error_code error;
  std::filesystem::create_directories(files.dir, error);
  check(!error, "[shapes] cannot make folder {}: {}", files.dir.string(), error.message());
  const TemporaryFolder temporary(files.dir);
  const auto renew = [&](const std::filesystem::path& file, uint32_t half, size_t first) {
    if (complete(file)) return;
    const std::filesystem::path fresh = temporary.path() / file.filename();
    write_records(fresh, half, first);
    std::filesystem::rename(fresh, file);
  };
  size_t first = 0;
  for (const auto& file : files.train()) {
    renew(file, 0, first);
    first += kRecords;
  }
  renew(files.test(), 1, 0);
}

DataSplit shapes(const DataConfig& config) {
  CifarFiles files{.name = kShapes,
                   .dir = data_folder(config.dir, kShapesFolder),
                   .train_records = kRecords,
                   .test_records = kRecords};
  files.remedy = fmt::format("remove the folder {} to generate it again", files.dir.string());
  std::vector<std::filesystem::path> all = files.train();
  all.push_back(files.test());
  if (!std::all_of(all.begin(), all.end(), complete)) generate(files);
  DataSplit split = read_cifar_files(files, config.val_size);
  if (config.val_size == 0) split.val_name = "generated test images";
  split.mean = {0.5f, 0.5f, 0.5f};
  split.deviation = {0.25f, 0.25f, 0.25f};
  split.class_names = {"disk",  "ring", "square",          "frame",         "triangle",
                       "cross", "star", "horizontal bars", "vertical bars", "checkerboard"};
  return split;
}

const bool shapes_registered = datasets().add({kShapes,
                                               "generated 10-class set, 10,000 training images",
                                               {.open = shapes, .generated = true}});

}  // namespace

const char* const kShapes = "shapes";

}  // namespace tw
