// Small data sets and folders for tests.
#pragma once

#include <gtest/gtest.h>

#include <fstream>

#include "data/dataset.h"
#include "engine/core/error.h"
#include "tests/support/temp_folder.h"

namespace tw::test {

/// n images. Sample i has label i, so that a batch shows its samples; its bytes depend on i and are
/// never 0.
class CountingDataset : public Dataset {
 public:
  explicit CountingDataset(size_t n, Shape shape = {32, 32, 3}) : size_(n) { image = shape; }
  size_t size() const override { return size_; }
  int32_t get(size_t i, std::span<uint8_t> pixels) const override {
    for (size_t p = 0; p < pixels.size(); ++p)
      pixels[p] = static_cast<uint8_t>(1 + (i * 31 + p) % 255);
    return static_cast<int32_t>(i);
  }

 private:
  size_t size_;
};

}  // namespace tw::test
