// Files that programs write: tables of results, and places that may be the same.
#pragma once

#include <filesystem>
#include <string>

#include "engine/io/file.h"

namespace tw {

/// UserError if there is a file at `path` that is no table with these columns; none for no path.
void check_table(const std::string& path, const std::string& columns);
/// A table at `path` with these columns and those of provenance(); not open for an empty path.
/// UserError as check_table().
GrowingFile result_table(const std::string& path, const std::string& columns);

/// Whether both name one file or folder, which may be yet to be made; not for pipes.
bool same_place(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace tw
