#include "engine/io/csv.h"

#include <charconv>
#include <sstream>

#include "engine/core/error.h"

namespace tw {

std::vector<std::string> csv_cells(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
  return cells;
}

CsvFile::CsvFile(const std::filesystem::path& path, const std::string& header,
                 int64_t keep_through) {
  std::string kept = header + "\n";
  if (const std::string text = read_text_if_any(path); !text.empty()) {
    std::istringstream in(text);
    std::string line;
    std::getline(in, line);
    check(line == header, "[csv] {} has a different header; another version wrote it",
          path.string());
    while (std::getline(in, line)) {
      int64_t key = 0;
      const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), key);
      const bool whole = error == std::errc{} && !in.eof();  // a killed run may leave half a row
      if (whole && key <= keep_through) kept += line + "\n";
    }
  }
  write_atomically(path, kept);
  out_ = GrowingFile(path, GrowingFile::Start::append);
}

}  // namespace tw
