// The binary format of CIFAR-10 and CIFAR-100: files of records, each of one or two label bytes and
// a 32 x 32 RGB image.
#pragma once

#include <filesystem>
#include <string>

#include "data/dataset.h"

namespace tw {

/// The image of a record: 1024 red, 1024 green and 1024 blue bytes.
inline constexpr size_t kCifarPixels = 32 * 32;
inline constexpr size_t kCifarImage = 3 * kCifarPixels;
inline constexpr size_t kCifarRecord = 1 + kCifarImage;  ///< with one label byte

/// The files of a data set in this format.
struct CifarFiles {
  std::string name;           ///< of the data set, for error messages
  std::filesystem::path dir;  ///< has the files
  size_t train_records = 0;   ///< in each of the training files
  size_t test_records = 0;    ///< in the test file
  std::string remedy{};       ///< advice for the user when a file is missing or damaged
  std::vector<std::string> train_names{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                       "data_batch_4.bin", "data_batch_5.bin"};
  std::string test_name = "test_batch.bin";
  size_t label_bytes = 1;  ///< before each image; the last one is its class
  int64_t classes = 10;

  /// The training files, in order.
  std::vector<std::filesystem::path> train() const;
  std::filesystem::path test() const { return dir / test_name; }
  size_t record_bytes() const { return label_bytes + kCifarImage; }
};

/// Reads the files into memory as NHWC bytes. train is augmented by crop_flip(); val is the test
/// file, or with val_size > 0 the last val_size training images, and then the test file is not
/// read. The caller sets mean and deviation. UserError when a file is missing or has another size,
/// a label is no class, or val_size leaves no training images.
DataSplit read_cifar_files(const CifarFiles& files, size_t val_size);

/// The lines of a file beside the images, the names of `defaults.size()` classes; `defaults` if
/// there is no such file. UserError when their number is another.
std::vector<std::string> class_names_beside(const CifarFiles& files, const std::string& file,
                                            std::vector<std::string> defaults);

}  // namespace tw
