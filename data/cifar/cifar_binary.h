// CIFAR-10's binary version: files of records, each one label byte and a 32 x 32 image in planes.
#pragma once

#include <filesystem>
#include <string>

#include "data/dataset.h"

namespace tw {

/// One record: the label, then 1024 red, 1024 green and 1024 blue bytes.
inline constexpr size_t kCifarPixels = 32 * 32;
inline constexpr size_t kCifarRecord = 1 + 3 * kCifarPixels;

/// Where a set in this format lies and what its files must hold.
struct CifarFiles {
  std::string name;           ///< of the data set, for error texts
  std::filesystem::path dir;  ///< holds data_batch_1.bin ... data_batch_5.bin, test_batch.bin
  size_t train_records = 0;   ///< in each of the five training files
  size_t test_records = 0;    ///< in the test file
  std::string remedy{};       ///< what to do when a file is missing or damaged

  /// The five training files, in order.
  std::vector<std::filesystem::path> train() const;
  std::filesystem::path test() const { return dir / "test_batch.bin"; }
};

/// Reads the files into memory as NHWC bytes; with val_size > 0 the last val_size training images
/// are val and the test file is not read. Normalisation is left to the caller. UserError when a
/// file is missing, has another size, holds a label above 9, or val_size leaves nothing to train.
DataSplit read_cifar_files(const CifarFiles& files, size_t val_size);

/// The folder of a data set, called `usual`: `dir` itself if it has that name, else inside `dir`.
/// Without a dir: inside $THINWIRE_CACHE, or data-cache in the current folder.
std::filesystem::path data_folder(const std::filesystem::path& dir, const std::string& usual);

}  // namespace tw
