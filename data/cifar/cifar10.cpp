// The data set cifar10: 50,000 training and 10,000 test images of 10 classes (Krizhevsky, "Learning
// Multiple Layers of Features from Tiny Images", 2009).
#include "data/cifar/cifar_binary.h"

namespace tw {

namespace {

constexpr const char* kCifarFolder = "cifar-10-batches-bin";

/// config.dir is the folder of the files, or the parent of cifar-10-batches-bin.
DataSplit cifar10(const DataConfig& config) {
  const bool direct = std::filesystem::exists(config.dir / "data_batch_1.bin");
  CifarFiles files{
      .name = "cifar10", .dir = config.dir, .train_records = 10'000, .test_records = 10'000};
  if (!direct || config.dir.empty()) files.dir = data_folder(config.dir, kCifarFolder);
  files.remedy =
      fmt::format("get it with: thinwire get-cifar10 {}", files.dir.parent_path().string());
  if (std::filesystem::is_regular_file(config.dir) ||
      std::filesystem::is_directory(config.dir / "train"))
    files.remedy = fmt::format("{} is {}: add --dataset imagefolder", config.dir.string(),
                               std::filesystem::is_directory(config.dir)
                                   ? "a folder of JPEG images with train/"
                                   : "a file; if it is a record file of JPEG images");
  DataSplit split = read_cifar_files(files, config.val_size);
  split.mean = {0.491f, 0.482f, 0.447f};
  split.deviation = {0.247f, 0.243f, 0.262f};
  return split;
}

const bool cifar10_registered =
    datasets().add({"cifar10", "CIFAR-10, binary version (scripts/data/get_cifar10.sh)", cifar10});

}  // namespace

}  // namespace tw
