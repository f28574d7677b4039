// RunFolder: the folder with configuration, tables, checkpoints and summary of one run.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "apps/train/config.h"
#include "apps/train/folder_lock.h"

namespace tw {

/// The folder of a run and the checkpoint it starts from.
struct RunFolder {
  std::filesystem::path path;
  std::filesystem::path checkpoint;  ///< empty: a new run
  std::shared_ptr<FolderLock> lock;  ///< held while the run writes here

  std::filesystem::path file(const char* name) const { return path / name; }
  std::filesystem::path checkpoints() const { return path / "checkpoints"; }
};

/// Finds or creates the folder for `config` on P ranks; called on rank 0. A derived name that is
/// taken gets a number; a name given by --name must be free. With --resume, the folder of that
/// checkpoint, or (auto) the last one of this name; a run that branches gets a new folder with the
/// tables of that run. UserError when another process writes there.
RunFolder open_run_folder(const TrainConfig& config, int ranks);

/// The newest complete checkpoint below `folder` (a run or its checkpoints folder, or a
/// checkpoint itself).
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder);

/// The same for the argument of --resume; UserError when there is none.
std::filesystem::path checkpoint_to_resume(const std::filesystem::path& asked);

}  // namespace tw
