// Reading whole files, and writing them atomically.
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
/// Throws Fault (disk full, no permission) or what `write` throws; `path` is then unchanged.
void write_atomically(const std::filesystem::path& path,
                      const std::function<void(std::ostream&)>& write);
void write_atomically(const std::filesystem::path& path, std::string_view text);

/// The content of a file or pipe; throws UserError when it cannot be read.
std::vector<std::byte> read_file(const std::filesystem::path& path);

}  // namespace tw
