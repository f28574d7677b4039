// Record files: a whole image folder in one file, read through a memory mapping.
//
//   header   80 bytes: magic, version, where the index lies, checksum of the index
//   data     JPEG files, one after the other; the training images in a random order
//   index    JSON (classes, counts, what was done), then 32 bytes a sample, then the names
//
// Every sample has a checksum, verified when it is read. Sample ids are those of the folder, so a
// run on the file gives the same bits as one on the folder it was made of, unless images were
// shrunk or left out: those behind one that was left out have other ids, so another order and other
// crops.
#pragma once

#include <filesystem>

#include "data/imagenet/jpeg_dataset.h"
#include "data/imagenet/mapped_file.h"

namespace tw {

/// How a record file is made.
struct PackOptions {
  int64_t resize = 0;    ///< > 0: images whose shorter side is longer are shrunk to it
  int64_t quality = 90;  ///< of images that were shrunk; others keep their bytes
  uint64_t seed = 1;     ///< of the order in the file
  bool skip_bad = false;
  int threads = 1;
};

/// What came of it.
struct PackReport {
  size_t train = 0, val = 0, resized = 0;
  uint64_t bytes = 0;
  std::vector<std::string> skipped;  ///< damaged files, one line each
};

/// Packs the folders train and val below `dir` into `file`, which appears when it is complete.
/// Every image is decoded once. UserError at the first damaged one unless they are skipped; Fault
/// when the disk is full.
PackReport pack_image_folder(const std::filesystem::path& dir, const std::filesystem::path& file,
                             const PackOptions& options);

/// A record file in memory.
class RecordFile {
 public:
  /// Maps and checks all but the samples; UserError says what is wrong with the file.
  explicit RecordFile(const std::filesystem::path& path);

  const std::vector<std::string>& classes() const { return classes_; }
  size_t train_size() const { return train_; }
  size_t val_size() const { return samples_.size() - train_; }

  /// Samples are numbered through: training, then validation.
  int32_t label(size_t i) const { return static_cast<int32_t>(samples_[i].label); }
  std::string name(size_t i) const;
  /// The bytes of a sample; JpegError when they are not those that were written.
  std::span<const std::byte> read(size_t i) const;
  /// Sample numbers [begin, end) by their place in the file.
  std::vector<uint32_t> storage_order(size_t begin, size_t end) const;
  /// Has what lies in the file from sample `first` to sample `last` read, without waiting for it.
  void will_need(size_t first, size_t last) const;

  /// An entry of the index as it lies in the file, little-endian.
  struct Sample {
    uint64_t offset, checksum;
    uint32_t bytes, label;
    uint64_t name_end;  ///< in the block of names
  };

 private:
  void parse();

  std::filesystem::path path_;
  MappedFile file_;
  std::vector<std::string> classes_;
  std::vector<Sample> samples_;
  std::string_view names_;
  size_t train_ = 0;
};

/// The first half of the index's samples (training) or the second.
std::shared_ptr<const JpegSource> record_source(std::shared_ptr<const RecordFile> file,
                                                bool training);

}  // namespace tw
