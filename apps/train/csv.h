// CsvFile: rows appended to a table whose header is fixed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tw {

class CsvFile {
 public:
  /// Starts a new table, or goes on with an existing one, dropping the rows whose first column
  /// (an integer that grows) exceeds `keep_through`. UserError when its header differs.
  CsvFile(const std::filesystem::path& path, const std::string& header, int64_t keep_through);

  /// Appends one row and flushes it; Fault when the disk is full.
  void row(const std::string& text);

 private:
  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace tw
