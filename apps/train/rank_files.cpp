#include "apps/train/rank_files.h"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "apps/common/rank_utils.h"
#include "apps/train/run_folder.h"
#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/io/file.h"

namespace tw {

namespace fs = std::filesystem;

namespace {

constexpr size_t kPiece = size_t{1} << 20;
constexpr int kEveryone = -1;

/// Sends bytes of this rank in pieces, to one rank or to every one.
class PieceSender {
 public:
  PieceSender(Communicator& comm, int to) : comm_(comm), to_(to) {}
  void put(ConstBytes bytes) {
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(kPiece, bytes.size())))
      send(bytes.first(std::min(kPiece, bytes.size())));
  }
  /// To be called after the last byte.
  void end() { send({}); }

 private:
  void send(ConstBytes piece) {
    uint64_t length = piece.size();
    broadcast(comm_, comm_.rank(), std::as_writable_bytes(std::span(&length, 1)));
    if (length == 0) return;
    if (to_ != kEveryone) return comm_.send(comm_.host(), to_, piece);
    copy_.assign(piece.begin(), piece.end());
    broadcast(comm_, comm_.rank(), copy_);
  }

  Communicator& comm_;
  int to_;
  std::vector<std::byte> copy_;
};

/// The part of every other rank while `from` sends to `to`: those that receive call `take`.
void follow_pieces(Communicator& comm, int from, int to,
                   const std::function<void(ConstBytes)>& take) {
  std::vector<std::byte> piece;
  for (uint64_t length = 1; length > 0;) {
    broadcast(comm, from, std::as_writable_bytes(std::span(&length, 1)));
    check<Fault>(length <= kPiece, "[checkpoint] rank {} announces a piece of {} bytes; at most {}",
                 from, length, kPiece);
    piece.resize(length);
    if (length == 0 || (to != kEveryone && to != comm.rank())) continue;
    if (to == kEveryone)
      broadcast(comm, from, piece);
    else
      piece.resize(comm.receive(comm.host(), from, piece));
    take(piece);
  }
}

/// Passes bytes of rank 0 to rank `to`, or to every one. Returns them on a rank that `keeps` them.
std::vector<std::byte> pass_on(Communicator& comm, ConstBytes bytes, int to, bool keeps) {
  std::vector<std::byte> received;
  if (comm.rank() == 0) {
    PieceSender sender(comm, to);
    sender.put(bytes);
    sender.end();
  } else {
    follow_pieces(comm, 0, to, [&](ConstBytes piece) {
      if (keeps) received.insert(received.end(), piece.begin(), piece.end());
    });
  }
  return received;
}

/// Stands for the content of a file; empty where it cannot be read.
std::string fingerprint(const fs::path& file) {
  try {
    return fmt::format("{:016x}", checksum(read_file(file)));
  } catch (const UserError&) {
    return "";
  }
}

}  // namespace

fs::path rank_file(const fs::path& folder, int rank, const std::string& prefix) {
  return folder / fmt::format("{}rank-{}.safetensors", prefix, rank);
}

RankFiles RankFiles::with_file(Communicator& comm, const fs::path& file) {
  const std::string mine = fingerprint(file);
  const std::string first = broadcast_text(comm, mine);
  const uint8_t sees = comm.rank() == 0 || (!mine.empty() && mine == first);
  RankFiles files;
  for (const uint8_t one : gather(comm, sees)) files.sees_.push_back(one != 0);
  if (files.blind().empty()) files.sees_.clear();
  return files;
}

RankFiles RankFiles::of_folder(Communicator& comm, const fs::path& folder) {
  const fs::path probe = folder / kProbe;
  run_collectively(comm, [&] {
    if (comm.rank() != 0) return;
    // another copy of the folder has no such text
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    try {
      write_atomically(probe, fmt::format("{} {}\n", now, ::getpid()));
    } catch (const Fault& fault) {
      refuse_folder(fault);
    }
  });
  const bool writes = ::access(folder.c_str(), W_OK) == 0;
  RankFiles files = with_file(comm, writes ? probe : fs::path());
  std::error_code ignored;
  if (comm.rank() == 0) fs::remove(probe, ignored);
  return files;
}

std::vector<int> RankFiles::blind() const {
  std::vector<int> ranks;
  for (size_t r = 0; r < sees_.size(); ++r)
    if (!sees_[r]) ranks.push_back(static_cast<int>(r));
  return ranks;
}

void RankFiles::write(Communicator& comm, const SafetensorsWriter& file, const fs::path& folder,
                      const std::string& prefix) const {
  const std::vector<int> others = blind();
  if (std::ranges::find(others, comm.rank()) == others.end())
    file.write(rank_file(folder, comm.rank(), prefix));
  for (const int from : others) {
    if (comm.rank() == from) {
      PieceSender sender(comm, 0);
      file.visit([&](ConstBytes bytes) { sender.put(bytes); });
      sender.end();
    } else if (comm.rank() == 0) {
      write_atomically(rank_file(folder, from, prefix), [&](std::ostream& out) {
        follow_pieces(comm, from, 0, [&](ConstBytes piece) {
          out.write(reinterpret_cast<const char*>(piece.data()), std::ssize(piece));
        });
      });
    } else {
      follow_pieces(comm, from, 0, {});
    }
  }
}

SafetensorsReader RankFiles::read(Communicator& comm, const fs::path& path) const {
  const std::vector<int> others = blind();
  if (others.empty()) return SafetensorsReader(path);
  const bool receives = std::ranges::find(others, comm.rank()) != others.end();
  std::optional<SafetensorsReader> file;
  run_collectively(comm, [&] {
    if (!receives) file.emplace(path);
  });
  const ConstBytes bytes = comm.rank() == 0 ? file->bytes() : ConstBytes();
  std::vector<std::byte> received =
      pass_on(comm, bytes, others.size() > 1 ? kEveryone : others[0], receives);
  if (receives) file.emplace(path, std::move(received));
  return std::move(*file);
}

SafetensorsReader RankFiles::read_own(Communicator& comm, const fs::path& folder) const {
  const std::vector<int> others = blind();
  const fs::path path = rank_file(folder, comm.rank());
  if (others.empty()) return SafetensorsReader(path);
  std::optional<SafetensorsReader> file;
  run_collectively(comm, [&] {
    if (std::ranges::find(others, comm.rank()) == others.end()) file.emplace(path);
  });
  for (const int to : others) {
    std::optional<SafetensorsReader> theirs;
    run_collectively(comm, [&] {  // its errors name the file of rank 0
      if (comm.rank() == 0) theirs.emplace(rank_file(folder, to));
    });
    std::vector<std::byte> received =
        pass_on(comm, theirs ? theirs->bytes() : ConstBytes(), to, comm.rank() == to);
    if (comm.rank() == to) file.emplace(path, std::move(received));
  }
  return std::move(*file);
}

}  // namespace tw
