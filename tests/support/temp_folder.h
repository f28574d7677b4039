// A temporary folder for a test.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace tw::test {

/// A new folder, named after the running test; the destructor removes it.
class TempFolder {
 public:
  TempFolder() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = "thinwire";
    if (info != nullptr)  // null in the set-up of a suite
      name += fmt::format("-{}-{}", info->test_suite_name(), info->name());
    std::ranges::replace(name, '/', '_');  // parameterised tests have slashes in their names
    std::string path = (std::filesystem::temp_directory_path() / (name + "-XXXXXX")).string();
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    path_ = path;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace tw::test
