#include "engine/io/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>

#include "engine/core/error.h"
#include "engine/core/settings.h"

namespace tw {

namespace {

/// Calls `call` again as long as a signal interrupts it.
template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// Throws E, or a DiskFault, with the system's `error` unless the call with `path` is done.
template <class E = Fault>
void check_done(bool done, fmt::format_string<std::string, char*> text,
                const std::filesystem::path& path, int error = errno) {
  if (done) return;
  const std::string line = fmt::format(text, path.string(), std::strerror(error));
  if (is_of_disk(error)) throw DiskFault(line);
  throw E(line);
}

}  // namespace

bool is_of_disk(int error) {
  return error == ENOSPC || error == EDQUOT || error == EIO || error == EINTR;
}

void sync_to_disk(const std::filesystem::path& path) {
  const int file = uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  const bool synced = file >= 0 && uninterrupted([&] { return ::fsync(file); }) == 0;
  const int error = errno;
  if (file >= 0) ::close(file);
  check_done(synced, "[file] cannot sync {}: {}", path, error);
}

void shorten_file(const std::filesystem::path& path, size_t bytes) {
  const bool done =
      uninterrupted([&] { return ::truncate(path.c_str(), static_cast<off_t>(bytes)); }) == 0;
  check_done(done, "[file] cannot shorten {}: {}", path);
}

void create_folders_durably(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> parents;  // whose names change
  std::error_code error;
  for (std::filesystem::path p = folder; !p.empty() && !std::filesystem::exists(p, error);
       p = p.parent_path())
    parents.push_back(p.has_parent_path() ? p.parent_path() : ".");
  std::filesystem::create_directories(folder, error);
  check_done(!error, "[file] cannot create {}: {}", folder, error.value());
  for (const std::filesystem::path& parent : parents) sync_to_disk(parent);
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  check_done(!error, "[file] cannot replace {}: {}", to, error.value());
  sync_to_disk(to.has_parent_path() ? to.parent_path() : ".");
}

void check_there(const char* area, const std::filesystem::path& path, const std::string& remedy) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return;
  const std::string near = nearest_beside(path);
  fail("[{}] there is no folder {}{}", area, path.string(), near.empty() ? remedy : near);
}

void check_writable(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const bool exists = ::access(path.c_str(), F_OK) == 0;
  // the slash: a file is no folder
  const std::string asked = exists ? path.string() : folder.string() + "/";
  const bool writable = ::access(asked.c_str(), W_OK) == 0;  // before errno is read
  check(writable, "[file] cannot write {}: {}", path.string(), std::strerror(errno));
}

void check_replaceable(const std::filesystem::path& path, std::string_view start,
                       const char* kind) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return;
  std::string found(start.size(), ' ');
  std::ifstream in(path, std::ios::binary);
  in.read(found.data(), std::ssize(found));
  check(!in.is_open() || in.gcount() == 0 || found == start,
        "[file] {} exists and is not {}: name another file or remove it", path.string(), kind);
}

void check_folder_writable(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::filesystem::path there = std::filesystem::absolute(folder);
  while (!std::filesystem::exists(there, ignored)) there = there.parent_path();
  const bool writable = ::access((there / "").c_str(), W_OK | X_OK) == 0;
  check(writable, "[file] cannot write to the folder {}: {}", folder.string(),
        std::strerror(errno));
}

void write_output(const std::filesystem::path& path, std::string_view text) {
  using Type = std::filesystem::file_type;
  std::error_code none;
  const Type type = std::filesystem::status(path, none).type();  // follows links
  if (type == Type::not_found || type == Type::none || type == Type::directory)
    return write_atomically(path, text);
  if (type == Type::regular) return write_atomically(std::filesystem::canonical(path), text);
  std::ofstream out(path, std::ios::binary);
  check_done(out.is_open(), "[file] cannot write {}: {}", path);
  out << text;
  out.close();
  check_done(!out.fail(), "[file] writing {} failed: {}", path);
}

namespace {

/// A file that is written under another name in its folder. It is removed unless it takes its name.
class PartFile {
 public:
  explicit PartFile(std::filesystem::path path)
      : path_(std::move(path)), part_(fmt::format("{}.{}.part", path_.string(), ::getpid())) {}
  PartFile(const PartFile&) = delete;
  ~PartFile() {
    std::error_code ignored;
    if (!part_.empty()) std::filesystem::remove(part_, ignored);
  }
  void write(const std::function<void(std::ostream&)>& write) const {
    std::ofstream out(part_, std::ios::binary | std::ios::trunc);
    check_done(out.is_open(), "[file] cannot write {}: {}", part_);
    write(out);
    out.close();
    check_done(!out.fail(), "[file] writing {} failed: {}", part_);
    sync_to_disk(part_);
  }
  void take_name() {
    rename_durably(part_, path_);
    part_.clear();
  }

 private:
  std::filesystem::path path_, part_;
};

}  // namespace

void write_atomically(const std::filesystem::path& path,
                      const std::function<void(std::ostream&)>& write) {
  PartFile file(path);
  file.write(write);
  file.take_name();
}

void write_atomically(const std::filesystem::path& path, std::string_view text) {
  write_atomically(path, [&](std::ostream& out) { out << text; });
}

void write_together(const std::filesystem::path& folder,
                    const std::map<std::string, std::string>& texts) {
  std::deque<PartFile> files;
  for (const auto& [name, text] : texts)
    files.emplace_back(folder / name).write([&text = text](std::ostream& out) { out << text; });
  for (PartFile& file : files) file.take_name();
}

GrowingFile::GrowingFile(std::filesystem::path path, Start start) : path_(std::move(path)) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (start == Start::append ? O_APPEND : O_TRUNC);
  file_ = uninterrupted([&] { return ::open(path_.c_str(), flags, 0666); });
  check_done<UserError>(is_open(), "[file] cannot write {}: {}", path_);
}

GrowingFile& GrowingFile::operator=(GrowingFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  return *this;
}

GrowingFile::~GrowingFile() {
  if (is_open()) ::close(file_);
}

void GrowingFile::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = uninterrupted([&] { return ::write(file_, text.data(), text.size()); });
    check_done(n >= 0, "[file] writing {} failed: {}", path_);
    text.remove_prefix(static_cast<size_t>(n));
  }
}

void GrowingFile::sync() const {
  const int result = uninterrupted([&] { return ::fsync(file_); });
  check_done(result == 0, "[file] cannot sync {}: {}", path_);
}

std::vector<std::byte> read_file(const std::filesystem::path& path, size_t most) {
  std::ifstream in(path, std::ios::binary);
  check(in.is_open(), "[file] cannot read {}: {}", path.string(), std::strerror(errno));
  std::error_code ignored;
  check(!std::filesystem::is_directory(path, ignored), "[file] cannot read {}: it is a folder",
        path.string());
  // some have no end
  check(most < SIZE_MAX || !std::filesystem::is_character_file(path, ignored),
        "[file] cannot read {}: it is a device", path.string());
  std::vector<std::byte> bytes;
  size_t size = 0;
  for (size_t chunk = 1 << 16; in; chunk = size) {  // the size of a pipe is unknown
    bytes.resize(size + chunk);
    in.read(reinterpret_cast<char*>(bytes.data()) + size, static_cast<std::streamsize>(chunk));
    size += static_cast<size_t>(in.gcount());
    check(size <= most, "[file] {} has more than {} bytes", path.string(), most);
  }
  check(!in.bad(), "[file] reading {} failed", path.string());
  bytes.resize(size);
  return bytes;
}

std::string read_text(const std::filesystem::path& path, size_t most) {
  const std::vector<std::byte> bytes = read_file(path, most);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string shell_word(const std::filesystem::path& path) {
  constexpr std::string_view kSafe = "/._-+=:,@%";
  std::string text = path.string();
  const bool plain = !text.empty() && std::ranges::all_of(text, [&](unsigned char c) {
    return std::isalnum(c) || c >= 0x80 || kSafe.find(static_cast<char>(c)) != kSafe.npos;
  });
  if (plain) return text;
  std::string result;
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return "'" + result + "'";
}

std::string read_text_if_any(const std::filesystem::path& path, size_t most) {
  std::error_code ignored;
  const auto type = std::filesystem::status(path, ignored).type();
  return type == std::filesystem::file_type::not_found ? "" : read_text(path, most);
}

std::string nearest_beside(const std::filesystem::path& path) {
  const std::filesystem::path name = path.has_filename() ? path : path.parent_path();
  std::vector<std::string> beside;
  std::error_code ignored;
  const std::filesystem::path folder = name.has_parent_path() ? name.parent_path() : ".";
  for (std::filesystem::directory_iterator it(folder, ignored), end; it != end;
       it.increment(ignored))
    beside.push_back(it->path().filename().string());
  std::ranges::sort(beside);
  const std::string near = nearest(name.filename().string(), beside);
  return near.empty() ? "" : "; nearest is " + (name.parent_path() / near).string();
}

}  // namespace tw
