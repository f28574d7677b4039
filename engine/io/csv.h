// Tables in CSV files without quotes; CsvFile appends rows to one on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/io/file.h"

namespace tw {

/// The cells of a line without quotes.
std::vector<std::string> csv_cells(const std::string& line);

class CsvFile {
 public:
  /// Creates the table, or continues an existing one: drops rows whose first column (an increasing
  /// integer) exceeds `keep_through`, and an incomplete last row. UserError when its header
  /// differs.
  CsvFile(const std::filesystem::path& path, const std::string& header, int64_t keep_through);

  /// Appends one row, which other programs see at once; Fault when the disk is full.
  void row(const std::string& text) { out_.write(text + '\n'); }
  /// Flushes the rows to the disk, so that they survive a power failure.
  void sync() const { out_.sync(); }

 private:
  GrowingFile out_;
};

}  // namespace tw
