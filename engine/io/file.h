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

/// Calls `write` for a temporary file in the folder of `path`, syncs it to disk and renames it to
/// `path`. Throws Fault (disk full, no permission) or what `write` throws; `path` is then
/// unchanged.
void write_atomically(const std::filesystem::path& path,
                      const std::function<void(std::ostream&)>& write);
void write_atomically(const std::filesystem::path& path, std::string_view text);

/// Flushes a file or the entries of a folder (names made, renamed or removed there) to the disk;
/// Fault when that fails.
void sync_to_disk(const std::filesystem::path& path);

/// Renames `from` to `to` in the same folder and flushes that folder, so that the new name survives
/// a power failure. Fault on failure.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// The whole file, which may be a pipe; UserError when it cannot be read.
std::vector<std::byte> read_file(const std::filesystem::path& path);

}  // namespace tw
