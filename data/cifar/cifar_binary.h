// The binary format of CIFAR-10: files of records, each a label byte and a 32 x 32 RGB image.
#pragma once

#include <filesystem>
#include <string>

#include "data/dataset.h"

namespace tw {

/// A record: the label, then 1024 red, 1024 green and 1024 blue bytes.
inline constexpr size_t kCifarPixels = 32 * 32;
inline constexpr size_t kCifarRecord = 1 + 3 * kCifarPixels;

/// The files of a data set in this format.
struct CifarFiles {
  std::string name;           ///< of the data set, for error messages
  std::filesystem::path dir;  ///< has data_batch_1.bin to data_batch_5.bin and test_batch.bin
  size_t train_records = 0;   ///< in each of the five training files
  size_t test_records = 0;    ///< in the test file
  std::string remedy{};       ///< advice for the user when a file is missing or damaged

  /// The five training files, in order.
  std::vector<std::filesystem::path> train() const;
  std::filesystem::path test() const { return dir / "test_batch.bin"; }
};

/// Reads the files into memory as NHWC bytes. train is augmented by crop_flip(); val is the test
/// file, or with val_size > 0 the last val_size training images, and then the test file is not
/// read. The caller sets mean and deviation. UserError when a file is missing or has another size,
/// a label is above 9, or val_size leaves no training images.
DataSplit read_cifar_files(const CifarFiles& files, size_t val_size);

/// The folder of a data set whose default name is `usual`: `dir` if it has that name, else
/// dir/usual. With an empty `dir`: $THINWIRE_CACHE/usual, or data-cache/usual.
std::filesystem::path data_folder(const std::filesystem::path& dir, const std::string& usual);

}  // namespace tw
