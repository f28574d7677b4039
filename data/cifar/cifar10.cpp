// The data set cifar10: 50,000 training and 10,000 test images of 10 classes (Krizhevsky, "Learning
// Multiple Layers of Features from Tiny Images", 2009).
#include "data/cifar/cifar_binary.h"

namespace tw {

namespace {

constexpr const char* kCifarFolder = "cifar-10-batches-bin";

/// What the user can do when files are missing in `folder`, for --data-dir `asked`. A download is
/// offered only where it adds nothing to a folder of other things.
std::string remedy_for(const std::filesystem::path& asked, const std::filesystem::path& folder) {
  std::error_code ignored;
  const std::string images = dataset_in(asked, "");
  if (!asked.empty() && !images.empty() && images != kCifar10)
    return fmt::format("{} is {}: add --dataset {}", asked.string(),
                       std::filesystem::is_directory(asked, ignored)
                           ? "a folder of images"
                           : "a file; if it is a record file",
                       images);
  const bool of_other_things = !asked.empty() && std::filesystem::is_directory(asked, ignored) &&
                               !std::filesystem::is_empty(asked, ignored) &&
                               !std::filesystem::is_directory(folder, ignored);
  if (of_other_things)
    return fmt::format(
        "{} holds other files; expected {}, or for images train/ and val/ with a folder for each "
        "class",
        asked.string(), kCifarFolder);
  return fmt::format("for CIFAR-10, get it with: thinwire get-cifar10 {}",
                     folder.parent_path().string());
}

/// `dir` is the folder of the files, or the parent of cifar-10-batches-bin.
std::filesystem::path files_in(const std::filesystem::path& dir) {
  return data_folder_with("data_batch_1.bin", dir, kCifarFolder);
}

DataSplit cifar10(const DataConfig& config) {
  CifarFiles files{.name = kCifar10,
                   .dir = files_in(config.dir),
                   .train_records = 10'000,
                   .test_records = 10'000};
  files.remedy = remedy_for(config.dir, files.dir);
  DataSplit split = read_cifar_files(files, config.val_size);
  split.mean = {0.491f, 0.482f, 0.447f};
  split.deviation = {0.247f, 0.243f, 0.262f};
  split.class_names = class_names_beside(
      files, "batches.meta.txt",
      {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"});
  return split;
}

/// Also where files are missing: the error says which.
bool holds_cifar10(const std::filesystem::path& dir) {
  std::error_code ignored;
  return std::filesystem::is_directory(files_in(dir), ignored);
}

const bool cifar10_registered =
    datasets().add({kCifar10,
                    "CIFAR-10, binary version (scripts/data/get_cifar10.sh)",
                    {.open = cifar10, .recognises = holds_cifar10}});

}  // namespace

const char* const kCifar10 = "cifar10";

}  // namespace tw
