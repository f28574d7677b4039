// The data set cifar10: 50,000 training and 10,000 test images of 10 classes (Krizhevsky, "Learning
// Multiple Layers of Features from Tiny Images", 2009).
#include <fstream>

#include "data/cifar/cifar_binary.h"
#include "data/class_names.h"

namespace tw {

namespace {

/// The lines of batches.meta.txt beside the images; without that file, the names of CIFAR-10.
std::vector<std::string> class_names_beside(const std::filesystem::path& dir) {
  std::ifstream in(dir / "batches.meta.txt");
  if (!in)
    return {"airplane", "automobile", "bird",  "cat",  "deer",
            "dog",      "frog",       "horse", "ship", "truck"};
  std::vector<std::string> names;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  check(names.size() == 10, "[cifar10] {} has {} names; expected 10, one a line",
        (dir / "batches.meta.txt").string(), names.size());
  return as_utf8(std::move(names));
}

constexpr const char* kCifarFolder = "cifar-10-batches-bin";

/// What the user can do when files are missing in `folder`, for --data-dir `asked`. A download is
/// offered only where it adds nothing to a folder of other things.
std::string remedy_for(const std::filesystem::path& asked, const std::filesystem::path& folder) {
  std::error_code ignored;
  const std::string images = dataset_in(asked, "");
  if (!asked.empty() && !images.empty())
    return fmt::format("{} is {}: add --dataset {}", asked.string(),
                       std::filesystem::is_directory(asked, ignored)
                           ? "a folder of JPEG images"
                           : "a file; if it is a record file of JPEG images",
                       images);
  const bool of_other_things = !asked.empty() && std::filesystem::is_directory(asked, ignored) &&
                               !std::filesystem::is_empty(asked, ignored) &&
                               !std::filesystem::is_directory(folder, ignored);
  if (of_other_things)
    return fmt::format(
        "{} holds other files; expected {}, or for images train/ and val/ with a folder for each "
        "class",
        asked.string(), kCifarFolder);
  return fmt::format("get it with: thinwire get-cifar10 {}", folder.parent_path().string());
}

/// config.dir is the folder of the files, or the parent of cifar-10-batches-bin.
DataSplit cifar10(const DataConfig& config) {
  const bool direct = std::filesystem::exists(config.dir / "data_batch_1.bin");
  CifarFiles files{
      .name = kCifar10, .dir = config.dir, .train_records = 10'000, .test_records = 10'000};
  if (!direct || config.dir.empty()) files.dir = data_folder(config.dir, kCifarFolder);
  files.remedy = remedy_for(config.dir, files.dir);
  DataSplit split = read_cifar_files(files, config.val_size);
  split.mean = {0.491f, 0.482f, 0.447f};
  split.deviation = {0.247f, 0.243f, 0.262f};
  split.class_names = class_names_beside(files.dir);
  return split;
}

const bool cifar10_registered =
    datasets().add({kCifar10, "CIFAR-10, binary version (scripts/data/get_cifar10.sh)", {cifar10}});

}  // namespace

const char* const kCifar10 = "cifar10";

}  // namespace tw
