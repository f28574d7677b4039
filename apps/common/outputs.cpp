#include "apps/common/outputs.h"

#include "apps/common/version.h"

namespace tw {

void check_table(const std::string& path, const std::string& columns) {
  check_replaceable(path, columns, "a table of this kind");
}

GrowingFile result_table(const std::string& path, const std::string& columns) {
  if (path.empty()) return {};
  check_table(path, columns);
  GrowingFile table(path, GrowingFile::Start::empty);
  table.write(columns + provenance_names() + "\n");
  return table;
}

bool same_place(const std::filesystem::path& a, const std::filesystem::path& b) {
  namespace fs = std::filesystem;
  std::error_code failed, other;
  const fs::path one = fs::weakly_canonical(fs::absolute(a), failed);
  return one == fs::weakly_canonical(fs::absolute(b), other) && !failed && !other;
}

}  // namespace tw
