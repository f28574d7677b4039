// Tables in CSV files without quotes; CsvFile appends rows to one on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/io/file.h"

namespace tw {

/// A text as a cell of a table for other programs: in quotes where it has a comma, a quote or a
/// line break (RFC 4180).
std::string csv_cell(const std::string& text);

class CsvFile {
 public:
  /// Creates the table, or continues an existing one: keeps the rows whose first column, an integer
  /// that does not decrease, is at most `keep_through`, up to the first row that is cut off or does
  /// not begin with a number. UserError when its header differs or its rows are out of order.
  CsvFile(const std::filesystem::path& path, const std::string& header, int64_t keep_through);

  /// The errors of the constructor, without a change of the file.
  static void check(const std::filesystem::path& path, const std::string& header,
                    int64_t keep_through);

  /// The first column of the last row that was kept; 0 if there is none.
  int64_t last_kept() const { return last_; }
  /// Appends one row, which other programs see at once; Fault when the disk is full.
  void row(const std::string& text) { out_.write(text + '\n'); }
  /// Flushes the rows to the disk, so that they survive a power failure.
  void sync() const { out_.sync(); }

 private:
  GrowingFile out_;
  int64_t last_ = 0;
};

}  // namespace tw
