#include "apps/train/csv.h"

#include <charconv>

#include "engine/core/error.h"
#include "engine/io/file.h"

namespace tw {

CsvFile::CsvFile(const std::filesystem::path& path, const std::string& header, int64_t keep_through)
    : path_(path) {
  std::string kept = header + "\n";
  if (std::ifstream in(path); in) {
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
  out_.open(path, std::ios::app);
  check<Fault>(out_.is_open(), "[csv] cannot append to {}", path.string());
}

void CsvFile::row(const std::string& text) {
  out_ << text << '\n' << std::flush;
  check<Fault>(!out_.fail(), "[csv] writing {} failed; is the disk full?", path_.string());
}

}  // namespace tw
