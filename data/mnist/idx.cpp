#include "data/mnist/idx.h"

#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "data/memory_images.h"

namespace tw {

namespace {

namespace fs = std::filesystem;

constexpr const char* kTrainImages = "train-images-idx3-ubyte";
constexpr size_t kSide = 28;
constexpr uint8_t kClasses = 10;

/// The file, or the one with .gz after its name; empty: there is neither.
fs::path file_in(const fs::path& dir, const std::string& name) {
  std::error_code ignored;
  for (const char* packed : {"", ".gz"})
    if (fs::path path = dir / (name + packed); fs::is_regular_file(path, ignored)) return path;
  return {};
}

/// Reads a file, and unpacks it if it is packed.
std::vector<uint8_t> read_unpacked(const std::string& prefix, const fs::path& path) {
  const std::unique_ptr<gzFile_s, decltype(&::gzclose)> file(::gzopen(path.c_str(), "rb"),
                                                             &::gzclose);
  check(file != nullptr, "{} cannot be read: {}", prefix, std::strerror(errno));
  std::vector<uint8_t> bytes;
  constexpr unsigned kChunk = 1 << 20;
  for (int got = 1; got > 0;) {
    const size_t before = bytes.size();
    bytes.resize(before + kChunk);
    got = ::gzread(file.get(), &bytes[before], kChunk);
    bytes.resize(before + static_cast<size_t>(std::max(0, got)));
  }
  int error = Z_OK;
  const char* reason = ::gzerror(file.get(), &error);
  check(error == Z_OK, "{} cannot be unpacked: {}", prefix, reason);
  return bytes;
}

/// The values of an idx file, after its header: two zeros, the type, the number of dimensions, and
/// the length of each in four bytes, the highest first. `inner`: all lengths but the first.
std::vector<uint8_t> read_values(const IdxFiles& files, const fs::path& dir,
                                 const std::string& name, std::vector<size_t> inner) {
  const fs::path path = file_in(dir, name);
  check(!path.empty(), "[{}] there is no file {} or {}.gz in {}: get it from {}", files.name, name,
        name, dir.string(), files.source);
  const std::string prefix = fmt::format("[{}] {}", files.name, path.string());
  std::vector<uint8_t> bytes = read_unpacked(prefix, path);
  const size_t header = 4 + 4 * (1 + inner.size());
  check(bytes.size() >= header, "{} has {} bytes, too few for an idx file", prefix, bytes.size());
  const uint8_t magic[] = {0, 0, 8, static_cast<uint8_t>(1 + inner.size())};
  check(std::equal(std::begin(magic), std::end(magic), bytes.begin()),
        "{} begins with {:02x}{:02x}{:02x}{:02x}; an idx file of bytes in {} dimensions with "
        "{:02x}{:02x}{:02x}{:02x}",
        prefix, bytes[0], bytes[1], bytes[2], bytes[3], magic[3], magic[0], magic[1], magic[2],
        magic[3]);
  const auto length = [&](size_t dimension) {
    const uint8_t* at = &bytes[4 + 4 * dimension];
    return size_t{at[0]} << 24 | size_t{at[1]} << 16 | size_t{at[2]} << 8 | at[3];
  };
  size_t values = length(0);
  for (size_t i = 0; i < inner.size(); ++i) {
    check(length(1 + i) == inner[i], "{} has images with a side of {}; expected {}", prefix,
          length(1 + i), inner[i]);
    values *= inner[i];
  }
  check(values > 0 && bytes.size() - header == values,
        "{} has {} bytes after its header, which says {}", prefix, bytes.size() - header, values);
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(header));
  return bytes;
}

/// `half`: train or t10k.
std::shared_ptr<const Dataset> read_half(const IdxFiles& files, const fs::path& dir,
                                         const std::string& half) {
  auto pixels = read_values(files, dir, half + "-images-idx3-ubyte", {kSide, kSide});
  auto labels = read_values(files, dir, half + "-labels-idx1-ubyte", {});
  const size_t images = pixels.size() / (kSide * kSide);
  check(labels.size() == images, "[{}] {} has {} images of {} and {} labels", files.name,
        dir.string(), images, half, labels.size());
  const auto wrong = std::ranges::find_if(labels, [](uint8_t label) { return label >= kClasses; });
  if (wrong != labels.end())
    fail("[{}] label {} of {} in {} is {}, expected 0 to {}", files.name, wrong - labels.begin(),
         half, dir.string(), *wrong, kClasses - 1);
  return std::make_shared<MemoryImages>(Shape{kSide, kSide, 1}, kClasses, std::move(pixels),
                                        std::move(labels));
}

/// `dir` itself if it has the training images, else the usual folder in it.
fs::path idx_folder(const fs::path& dir, const std::string& usual) {
  return !dir.empty() && !file_in(dir, kTrainImages).empty() ? dir : data_folder(dir, usual);
}

}  // namespace

DataSplit read_idx_files(const IdxFiles& files, const DataConfig& config) {
  const fs::path dir = idx_folder(config.dir, files.usual);
  DataSplit split = split_images(files.name, read_half(files, dir, "train"), config.val_size,
                                 [&] { return read_half(files, dir, "t10k"); });
  split.mean = {files.mean};
  split.deviation = {files.deviation};
  split.class_names = files.class_names;
  return split;
}

bool add_idx_data_set(const IdxFiles& files) {
  const auto recognises = [files](const fs::path& dir) {
    if (!file_in(dir / files.usual, kTrainImages).empty()) return true;
    std::string path = dir.string();
    for (char& c : path) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return (path.find("fashion") != path.npos) == files.fashion &&
           !file_in(dir, kTrainImages).empty();
  };
  return datasets().add({files.name,
                         files.help,
                         {.open = [files](const DataConfig& c) { return read_idx_files(files, c); },
                          .recognises = recognises}});
}

}  // namespace tw
