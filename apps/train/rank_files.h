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

  // Collective; every rank calls them equally often, each with a path on rank 0.
  /// Writes the file of every rank. Fault when the disk is full.
  void write(Communicator& comm, const SafetensorsWriter& file,
             const std::filesystem::path& path) const;
  /// Reads a file on every rank. UserError, the same on all, where one is missing or damaged.
  SafetensorsReader read(Communicator& comm, const std::filesystem::path& path) const;

 private:
  std::vector<bool> sees_;  // empty: all do
};

}  // namespace tw
