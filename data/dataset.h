// Dataset: labelled u8 images of one size, addressed by sample id.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/registry.h"
#include "engine/shape.h"

namespace tw {

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual size_t size() const = 0;
  /// Writes sample i (H*W*C bytes, NHWC) and returns its label; safe from several threads.
  virtual int32_t get(size_t i, std::span<uint8_t> pixels) const = 0;

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
};

using DatasetFactory = std::function<DataSplit(const DataConfig&)>;
Registry<DatasetFactory>& datasets();

/// Samples [begin, end) of another data set.
std::shared_ptr<const Dataset> subset(std::shared_ptr<const Dataset> whole, size_t begin,
                                      size_t end);

}  // namespace tw
