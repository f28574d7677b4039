// Record files: an image folder packed into one file, which is read through a memory mapping.
//
//   header   80 bytes: magic, version, offset and checksum of the index
//   data     the image files; the training images in random order
//   index    JSON (classes, counts, options), then 32 bytes per sample, then the names
//
// Every sample has a checksum, verified when it is read. Samples have the ids of the folder, so a
// run on the file gives the same bits as a run on the folder, unless images were resized or left
// out. Leaving out an image shifts the ids after it, which changes order and crops.
#pragma once

#include <atomic>
#include <filesystem>

#include "data/imagenet/image_dataset.h"
#include "data/imagenet/mapped_file.h"
#include "data/tally.h"

namespace tw {

struct PackOptions {
  int64_t resize = 0;     ///< > 0: shrink images to this shorter side, in pixels
  int64_t quality = 90;   ///< of shrunk images, 1 to 100; others keep their bytes
  uint64_t seed = 1;      ///< of the order of the training images
  bool skip_bad = false;  ///< leave damaged files out
  int threads = 1;
  const std::atomic<bool>* stop = nullptr;  ///< asks to end without a file; null: never
};

struct PackReport {
  size_t train = 0, val = 0, resized = 0;  ///< images; val is 0 without a folder of that name
  uint64_t bytes = 0;                      ///< of the record file
  Tally skipped;                           ///< damaged files by class: "file: reason"
  std::string left_out;                    ///< files that are no images, by reason
};

/// Packs dir/train and dir/val, or where there is no val the images of train or of class folders,
/// into `file`, which is renamed into place when it is complete.
/// Decodes every image to check it. UserError at a damaged image unless skip_bad; Fault when the
/// disk is full, or when `stop` asks to end.
PackReport pack_image_folder(const std::filesystem::path& dir, const std::filesystem::path& file,
                             const PackOptions& options);

/// A record file, mapped into memory.
class RecordFile {
 public:
  /// Maps the file and checks header and index; UserError when they are damaged.
  explicit RecordFile(const std::filesystem::path& path);

  const std::vector<std::string>& classes() const { return classes_; }
  size_t train_size() const { return train_; }
  size_t val_size() const { return samples_.size() - train_; }

  /// Samples 0 to train_size() - 1 are for training, the others for validation.
  int32_t label(size_t i) const { return static_cast<int32_t>(samples_[i].label); }
  std::string name(size_t i) const;
  /// `train/class/file`, or with val.
  std::string_view name_in_folder(size_t i) const;
  uint64_t bytes(size_t i) const { return samples_[i].bytes; }
  /// The image file of a sample; ImageError when its checksum is wrong.
  std::span<const std::byte> read(size_t i) const;
  /// Samples begin to end - 1, sorted by their offset in the file.
  std::vector<uint32_t> storage_order(size_t begin, size_t end) const;
  /// Starts reading the bytes of the file from sample `first` to sample `last`, and returns.
  void will_need(size_t first, size_t last) const;

  /// An entry of the index, as in the file; little-endian.
  struct Sample {
    uint64_t offset, checksum;
    uint32_t bytes, label;
    uint64_t name_end;  ///< offset in the names
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

/// The training or the validation samples.
std::shared_ptr<const ImageSource> record_source(std::shared_ptr<const RecordFile> file,
                                                 bool training);

}  // namespace tw
