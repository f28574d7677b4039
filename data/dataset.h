// Dataset: labelled u8 images of one size, addressed by sample id; the registry of data sets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/registry.h"
#include "engine/core/shape.h"

namespace tw {

/// One sample cannot be read or decoded.
class BadSampleError : public UserError {
 public:
  /// what() is "[dataset] sample: reason", and how to go on without the sample.
  BadSampleError(std::string_view dataset, std::string_view class_name, std::string_view sample,
                 std::string_view reason)
      : UserError(fmt::format("[{}] {}: {}; --bad-images skip goes on without it", dataset, sample,
                              reason)),
        class_name_(class_name),
        description_(fmt::format("{}: {}", sample, reason)) {}
  const std::string& class_name() const { return class_name_; }
  /// "sample: reason".
  const std::string& description() const { return description_; }

 private:
  std::string class_name_, description_;
};

/// The order of the samples in a file that is faster to read sequentially.
class StorageLayout {
 public:
  virtual ~StorageLayout() = default;
  /// All sample ids, in the order in which they are stored.
  virtual std::span<const uint32_t> order() const = 0;
  /// Hint: positions [begin, end) of order() will be read soon. Starts the reads and returns.
  virtual void will_need(size_t begin, size_t end) const = 0;
};

/// Samples are computed on demand, may be requested from several threads at once, and are the same
/// bytes every time. wrappers.h has data sets made of others.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual size_t size() const = 0;
  /// Writes sample i (H*W*C bytes, NHWC) and returns its label; -1: the sample does not count.
  /// BadSampleError when it cannot be read.
  virtual int32_t get(size_t i, std::span<uint8_t> pixels) const = 0;
  /// Sample i with the random augmentation of training, drawn from (seed, epoch, i) alone. By
  /// default the sample is not augmented.
  virtual int32_t get_augmented(size_t i, uint64_t /*seed*/, uint32_t /*epoch*/,
                                std::span<uint8_t> pixels) const {
    return get(i, pixels);
  }
  /// Name, label and size or checksum of sample i, the same on all machines: `n01440764/a.JPEG with
  /// label 0 and 9000 bytes`. Of many files, an even sample has sizes. Ranks compare them.
  virtual std::string describe(size_t /*i*/) const { return "an image"; }
  /// What users know sample i by, in UTF-8: `n01440764/a.JPEG`, or its number.
  virtual std::string name(size_t i) const { return std::to_string(i); }
  /// Null when every order of reading is as fast.
  virtual const StorageLayout* storage() const { return nullptr; }
  /// Whether get_augmented() is crop_flip() of get(). ResidentData then keeps the samples in GPU
  /// memory and augments them there, with the same bytes.
  virtual bool supports_resident() const { return false; }

  Shape image{32, 32, 3};  ///< H, W, C
  int64_t classes = 10;
};

class SkipLog;

/// Training and validation samples, and how the inputs are normalised.
struct DataSplit {
  std::shared_ptr<const Dataset> train, val;
  std::string val_name;  ///< "test file" or "5000 held-out training images"
  std::vector<float> mean{}, deviation{};
  std::string left_out{};  ///< files of the folder that are not read, by reason; empty: none
  std::shared_ptr<SkipLog> skipped{};      ///< the bad samples; null: a bad sample is an error
  std::vector<std::string> class_names{};  ///< in the order of the labels; empty: unknown
  /// Images that are measured once, at the end, with the labels of the others; null: none.
  std::shared_ptr<const Dataset> test{};
  std::string test_name{};
};

struct DataConfig {
  std::filesystem::path dir;  ///< empty: the data set's default folder
  size_t val_size = 0;        ///< > 0: hold out so many training images as val
  /// Hold out this share of the images of each class, of image files. Without a choice, a tenth
  /// where a folder has class folders alone.
  std::optional<double> val_split{};
  static constexpr double kMostValSplit = 0.9;
  int64_t image_size = 0;         ///< side of the images in pixels; 0: the data set's own
  double colour_jitter = 0;       ///< brightness, contrast and saturation vary by this fraction
  bool exif_orientation = false;  ///< turn images as their EXIF orientation says
  bool crops_border = true;       ///< as ImageOptions::crops_border
  bool whole = false;             ///< of a folder of image files: val has all images that are not
                                  ///< in train, which is not read (null)
  bool skip_bad = false;          ///< skip_bad() instead of throwing BadSampleError
};

/// Opens a data set; UserError when files are missing or damaged, or an option does not apply.
using DatasetFactory = std::function<DataSplit(const DataConfig&)>;

/// What the image files of a data set are like.
struct ImageSurvey {
  size_t images = 0;  ///< to train on, before any are held out
  int64_t side = 0;   ///< the median of the shorter sides of a sample of them, in pixels
  int64_t classes = 0;
};

/// What is registered under a data set's name.
struct DatasetEntry {
  DatasetFactory open;
  bool generated = false;    ///< makes its images itself; DataConfig::dir is where they are kept
  bool image_files = false;  ///< reads image files: all options of DataConfig apply
  /// Whether the folder or file holds this data set, by what is in it.
  std::function<bool(const std::filesystem::path&)> recognises = [](const auto&) { return false; };
  /// Of image files; null for others. UserError as by `open`, and where no image can be read.
  std::function<ImageSurvey(const DataConfig&)> survey{};

  DataSplit operator()(const DataConfig& config) const { return open(config); }
};
/// The data sets by name (--dataset). Each registers itself in its own source file.
inline Registry<DatasetEntry>& datasets() {
  static Registry<DatasetEntry> registry{"dataset"};
  return registry;
}
extern const char* const kCifar10;      ///< what a folder is taken for that does not exist
extern const char* const kShapes;       ///< generated; for training without a folder
extern const char* const kImageFolder;  ///< image files in one folder a class
extern const char* const kImageNet;
/// The data set that recognises this folder or file, else `other`.
std::string dataset_in(const std::filesystem::path& dir, const std::string& other);
/// The same; CIFAR-10, whose error says how to get it, where no folder is there. UserError for one
/// that no data set recognises.
std::string dataset_of(const std::filesystem::path& dir);

/// UserError for less than two classes in this folder.
void check_classes(int64_t classes, const std::filesystem::path& dir);

/// The folder of a data set whose default name is `usual`: `dir` if it has that name, else
/// dir/usual. With an empty `dir`: $THINWIRE_CACHE/usual, or data-cache/usual.
std::filesystem::path data_folder(const std::filesystem::path& dir, const std::string& usual);
/// `dir` if it has the file; else data_folder().
std::filesystem::path data_folder_with(const std::string& file, const std::filesystem::path& dir,
                                       const std::string& usual);

}  // namespace tw
