// CsvFile: a table on disk that rows are appended to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tw {

class CsvFile {
 public:
  /// Creates the table, or continues an existing one: drops rows whose first column (an increasing
  /// integer) exceeds `keep_through`, and an incomplete last row. UserError when its header
  /// differs.
  CsvFile(const std::filesystem::path& path, const std::string& header, int64_t keep_through);

  /// Appends one row and flushes it; Fault when the disk is full.
  void row(const std::string& text);

 private:
  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace tw
