// Files that are either there in full or not there at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <ostream>
#include <span>
#include <string_view>
#include <vector>

namespace tw {

/// Lets `write` fill a temporary file beside `path`, syncs it to disk and renames it over `path`.
/// Throws Fault (disk full, no permission) or what `write` throws; `path` is then what it was
/// before.
void write_atomically(const std::filesystem::path& path,
                      const std::function<void(std::ostream&)>& write);
void write_atomically(const std::filesystem::path& path, std::string_view text);

/// The whole file, which may be a pipe; UserError when it cannot be read.
std::vector<std::byte> read_file(const std::filesystem::path& path);

}  // namespace tw
