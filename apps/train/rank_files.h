// RankFiles: how ranks read and write the parts of a checkpoint in the folder of rank 0. A rank
// that sees the folder does so itself. The bytes of the others pass through rank 0 in pieces, so
// that hosts may have disks of their own; every rank takes part in each piece, so that none waits
// long.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "engine/io/safetensors.h"

namespace tw {

/// What a rank alone has, such as its part of a checkpoint: folder/rank-N.safetensors, with
/// `prefix` in front of the name.
std::filesystem::path rank_file(const std::filesystem::path& folder, int rank,
                                const std::string& prefix = "");

class RankFiles {
 public:
  /// All ranks see the folder.
  RankFiles() = default;

  /// For a run that writes into `folder` of rank 0: the ranks that see a file which rank 0 makes
  /// there, and may write. Collective. UserError when rank 0 cannot write there.
  static RankFiles of_folder(Communicator& comm, const std::filesystem::path& folder);
  /// For a run that only reads: the ranks that see the same bytes as rank 0 in `file`. Collective.
  static RankFiles with_file(Communicator& comm, const std::filesystem::path& file);

  /// The ranks that do not see it.
  std::vector<int> blind() const;

  // Collective, with paths of rank 0, which takes none from another rank.
  /// Writes rank_file() of every rank in `folder`. Fault when the disk is full.
  void write(Communicator& comm, const SafetensorsWriter& file, const std::filesystem::path& folder,
             const std::string& prefix = "") const;
  /// Reads a file, the same on all ranks. UserError, also the same, where it is missing or damaged.
  SafetensorsReader read(Communicator& comm, const std::filesystem::path& path) const;
  /// Reads rank_file() of every rank in `folder`. UserError, the same on all, as in read().
  SafetensorsReader read_own(Communicator& comm, const std::filesystem::path& folder) const;

 private:
  std::vector<bool> sees_;  // empty: all do
};

}  // namespace tw
