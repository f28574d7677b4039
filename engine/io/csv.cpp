#include "engine/io/csv.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "engine/core/error.h"

namespace tw {

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

namespace {

struct Rows {
  std::vector<std::string> lines;
  int64_t last = 0;  // key of the last one
};

/// The rows of a table up to the key `keep_through`; UserError when their order was changed.
Rows rows_of(const std::filesystem::path& path, const std::string& header, int64_t keep_through) {
  Rows rows;
  const std::string text = read_text_if_any(path);
  if (text.empty()) return rows;
  std::istringstream in(text);
  std::string line;
  std::getline(in, line);
  tw::check(line == header, "[csv] {} has a different header; another version wrote it",
            path.string());
  while (std::getline(in, line)) {
    int64_t key = 0;
    const char* const end = line.data() + std::min(line.find(','), line.size());
    const auto [stop, error] = std::from_chars(line.data(), end, key);
    // a killed run may leave half a row, and a power failure anything after the checkpoint
    if (in.eof() || error != std::errc{} || stop != end || key > keep_through) break;
    tw::check(key >= rows.last, "[csv] {} has a row of {} after one of {}; the table was changed",
              path.string(), key, rows.last);
    rows.lines.push_back(line);
    rows.last = key;
  }
  return rows;
}

}  // namespace

CsvFile::CsvFile(const std::filesystem::path& path, const std::string& header,
                 int64_t keep_through) {
  std::string kept = header + "\n";
  const Rows rows = rows_of(path, header, keep_through);
  last_ = rows.last;
  for (const std::string& row : rows.lines) kept += row + "\n";
  if (std::filesystem::is_symlink(path)) std::filesystem::remove(path);
  write_atomically(path, kept);
  out_ = GrowingFile(path, GrowingFile::Start::append);
}

void CsvFile::check(const std::filesystem::path& path, const std::string& header,
                    int64_t keep_through) {
  rows_of(path, header, keep_through);
}

}  // namespace tw
