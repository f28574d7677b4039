// Small data sets and folders for tests.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "data/dataset.h"
#include "engine/core/error.h"

namespace tw::testing {

/// A temporary folder; the destructor removes it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tw_test.XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

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

/// The text of the E that `body` throws.
template <class E = UserError>
std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace tw::testing
