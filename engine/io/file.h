// Reading whole files, writing them atomically, and files that grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw {

/// Whether the system's `error` may pass: a disk that is full or broken, a call that was
/// interrupted.
bool is_of_disk(int error);

/// For the error of a path that does not exist: `; nearest is PATH` with a file or folder beside
/// it, or nothing.
std::string nearest_beside(const std::filesystem::path& path);

/// UserError unless there is `path`: `[AREA] there is no folder PATH`, with the nearest beside it
/// or else `remedy`.
void check_there(const char* area, const std::filesystem::path& path,
                 const std::string& remedy = "");
/// UserError unless `path`, or the folder where it would be made, may be written.
void check_writable(const std::filesystem::path& path);
/// UserError if `path` is a file that does not begin with `start`: it is not one that a program
/// wrote as `kind`, such as "an ONNX file", and would be lost.
void check_replaceable(const std::filesystem::path& path, std::string_view start, const char* kind);
/// UserError unless files may be written in this folder, which may be yet to be made.
void check_folder_writable(const std::filesystem::path& folder);

/// Calls `write` for a temporary file in the folder of `path`, syncs it to disk and renames it to
/// `path`. Throws Fault (disk full, no permission) or what `write` throws; `path` is then
/// unchanged.
void write_atomically(const std::filesystem::path& path,
                      const std::function<void(std::ostream&)>& write);
void write_atomically(const std::filesystem::path& path, std::string_view text);
/// Writes texts to files of a folder by their names. All are on the disk before the first takes its
/// name, so that none changes where it is full.
void write_together(const std::filesystem::path& folder,
                    const std::map<std::string, std::string>& texts);

/// Writes a file that the user has named: as write_atomically, but of a symbolic link the target is
/// replaced, and a device or a pipe is written in place.
void write_output(const std::filesystem::path& path, std::string_view text);

/// Flushes a file or the entries of a folder (names made, renamed or removed there) to the disk;
/// Fault when that fails.
void sync_to_disk(const std::filesystem::path& path);

/// Cuts a file to its first bytes, where it is; Fault when that fails.
void shorten_file(const std::filesystem::path& path, size_t bytes);

/// Makes a folder and its missing parents, and flushes their names to the disk; Fault when that
/// fails.
void create_folders_durably(const std::filesystem::path& folder);

/// Renames `from` to `to` in the same folder and flushes that folder, so that the new name survives
/// a power failure. Fault on failure.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// A text file that grows. Every write reaches the system at once.
class GrowingFile {
 public:
  GrowingFile() = default;
  enum class Start { empty, append };
  /// Creates the file, or opens an existing one; UserError, with the system's reason, when that
  /// fails.
  GrowingFile(std::filesystem::path path, Start start);
  GrowingFile(GrowingFile&& other) noexcept { *this = std::move(other); }
  GrowingFile& operator=(GrowingFile&& other) noexcept;
  ~GrowingFile();

  bool is_open() const { return file_ >= 0; }
  /// Fault, with the system's reason, when the disk is full or broken; part of the text may then be
  /// in the file.
  void write(std::string_view text);
  /// Flushes to the disk what was written; Fault when that fails.
  void sync() const;

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

/// The whole file, which may be a pipe, or a device if `most` is given; UserError when it cannot be
/// read or has more than `most` bytes.
std::vector<std::byte> read_file(const std::filesystem::path& path, size_t most = SIZE_MAX);

/// The same as text.
std::string read_text(const std::filesystem::path& path, size_t most = SIZE_MAX);
/// The same; empty when there is no such file.
std::string read_text_if_any(const std::filesystem::path& path, size_t most = SIZE_MAX);

/// The name of a file as one word of a shell command, quoted where that is necessary.
std::string shell_word(const std::filesystem::path& path);

/// The most bytes of a file that is read as JSON, and of the header of any other file.
inline constexpr size_t kMostJson = 100'000'000;

}  // namespace tw
