// Dataset: labelled u8 images of one size, addressed by sample id.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/core/registry.h"
#include "engine/core/shape.h"

namespace tw {

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual size_t size() const = 0;
  /// Writes sample i (H*W*C bytes, NHWC) and returns its label; safe from several threads.
  virtual int32_t get(size_t i, std::span<uint8_t> pixels) const = 0;
  /// The same for training, augmented by what (seed, epoch, i) draw; `raw` is memory for an image.
  /// Unless a data set knows better: pad-4 crop and flip. A label of -1 asks to ignore the sample.
  virtual int32_t get_augmented(size_t i, uint64_t seed, uint32_t epoch, std::span<uint8_t> raw,
                                std::span<uint8_t> pixels) const;
  /// Sample ids in the order in which they are stored, if reading in that order is faster; else
  /// empty.
  virtual std::span<const uint32_t> storage_order() const { return {}; }
  /// A hint: samples [begin, end) of the storage order are wanted soon. Does not wait for them.
  virtual void will_need(size_t /*begin*/, size_t /*end*/) const {}
  /// What went wrong with samples that were skipped, since the last call: one line each.
  virtual std::vector<std::string> take_complaints() const { return {}; }

  /// Whether all samples lie in memory and are augmented by pad-4 crop and flip: a GPU can then
  /// hold them and do the same.
  virtual bool supports_resident() const { return false; }

  Shape image{32, 32, 3};  ///< H, W, C
  int64_t classes = 10;
};

/// The two halves of a data set and how its inputs are normalised.
struct DataSplit {
  std::shared_ptr<const Dataset> train, val;
  std::string val_name;  ///< "test file" or "5000 held-out training images"
  std::vector<float> mean{}, deviation{};
};

struct DataConfig {
  std::filesystem::path dir;  ///< empty: the data set's default place
  size_t val_size = 0;        ///< > 0: the last so many training images become val
  int64_t image_size = 0;     ///< side of the images; 0: the data set's own
  double colour_jitter = 0;   ///< brightness, contrast and saturation vary by this share
  bool skip_bad = false;      ///< leave damaged images out instead of ending
};

using DatasetFactory = std::function<DataSplit(const DataConfig&)>;
Registry<DatasetFactory>& datasets();

/// Samples [begin, end) of another data set.
std::shared_ptr<const Dataset> subset(std::shared_ptr<const Dataset> whole, size_t begin,
                                      size_t end);

}  // namespace tw
