// ImageDataset: image files of any size as training and validation images of one size.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/dataset.h"

namespace tw {

/// Labelled image files: a folder, or a record file. Safe from several threads.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual size_t size() const = 0;
  virtual int32_t label(size_t i) const = 0;
  /// The file's path, for messages.
  virtual std::string name(size_t i) const = 0;
  /// The file inside its half of the data: `class/file` or `class/folder/file`.
  virtual std::string relative_name(size_t i) const = 0;
  /// The size of file i; 0 when it cannot be found out.
  virtual uint64_t bytes(size_t i) const = 0;
  /// The bytes of file i, in `buffer` or in memory of the source. ImageError when they cannot be
  /// read or their checksum is wrong.
  virtual std::span<const std::byte> read(size_t i, std::vector<std::byte>& buffer) const = 0;
  /// Null when every order of reading is as fast.
  virtual const StorageLayout* storage() const { return nullptr; }
};

/// Of the pixels of photographs, between 0 and 1: those of ImageNet, as in torchvision.
inline const std::vector<float> kImageMean{0.485f, 0.456f, 0.406f},
    kImageDeviation{0.229f, 0.224f, 0.225f};

struct ImageOptions {
  int64_t classes = 1000;
  int64_t image_size = 224;       ///< side of the samples in pixels
  double colour_jitter = 0;       ///< see colour_jitter()
  bool exif_orientation = false;  ///< turn images as their EXIF orientation says
  /// Whether get() leaves an eighth of the shorter side out, as ImageNet's validation does; else
  /// the shorter side becomes image_size.
  bool crops_border = true;
};

/// get(): the image resized so that its shorter side is image_size * 256 / 224, or image_size
/// without crops_border, then its centre crop. get_augmented(): random_resized_crop() and
/// colour_jitter(). BadSampleError names a file that cannot be read or decoded.
class ImageDataset : public Dataset {
 public:
  ImageDataset(std::shared_ptr<const ImageSource> source, const ImageOptions& options);

  size_t size() const override { return source_->size(); }
  int32_t get(size_t i, std::span<uint8_t> pixels) const override;
  int32_t get_augmented(size_t i, uint64_t seed, uint32_t epoch,
                        std::span<uint8_t> pixels) const override;
  std::string describe(size_t i) const override;
  std::string name(size_t i) const override;
  const StorageLayout* storage() const override { return source_->storage(); }

 private:
  /// Decodes file i and resamples the rectangle that crop_of(width, height) chooses; `cut`: from
  /// its pixels alone.
  template <class CropOf>
  int32_t decode(size_t i, std::span<uint8_t> pixels, bool cut, const CropOf& crop_of) const;

  const std::shared_ptr<const ImageSource> source_;
  const ImageOptions options_;
};

}  // namespace tw
