// RunFolder: the folder with configuration, tables, checkpoints and summary of one run.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "apps/common/checkpoint_folder.h"
#include "apps/train/config.h"
#include "engine/core/error.h"

namespace tw {

/// An flock() on a folder, held until destruction or the end of the process. Does nothing on file
/// systems without locks.
class FolderLock {
 public:
  /// UserError when another process still holds the lock after `patience` seconds; a killed one may
  /// take a moment to release it.
  explicit FolderLock(const std::filesystem::path& folder, double patience = 5);
  ~FolderLock();
  /// Fault when `folder` is not the locked folder any more, since it was renamed or removed.
  void check_place(const std::filesystem::path& folder) const;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;
};

/// Rethrows a Fault that is caught before the first step if it may pass; else the folder cannot be
/// written, which is a UserError.
[[noreturn]] void refuse_folder(const Fault& fault);

/// A folder that was made for a run. It is removed again unless the run keeps it.
class NewFolder {
 public:
  explicit NewFolder(std::filesystem::path path) : path_(std::move(path)) {}
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder();
  void keep() { kept_ = true; }

 private:
  std::filesystem::path path_;
  bool kept_ = false;
};

/// The folder of a run and the checkpoint it starts from.
struct RunFolder {
  std::filesystem::path path;
  std::filesystem::path checkpoint;      ///< empty: a new run
  std::filesystem::path damaged{};       ///< a newer checkpoint, in place of which it is taken
  std::string branched_from{};           ///< checkpoint of another run that this one continues
  std::shared_ptr<FolderLock> lock;      ///< held while the run writes here
  std::shared_ptr<NewFolder> created{};  ///< null if the folder was there before

  /// Whether it begins with that checkpoint, so that the two runs may differ.
  bool branches() const;
  std::filesystem::path file(const char* name) const { return path / name; }
  std::filesystem::path checkpoints() const { return path / "checkpoints"; }
  std::filesystem::path gradients() const { return path / "gradients"; }
};

/// The checkpoint that the run in `folder` branched from, by its config.json; empty if it did not.
std::string branched_from(const std::filesystem::path& folder);

/// The file in a run folder by which ranks find out whether they see it.
inline constexpr const char* kProbe = "ranks.probe";

/// The name of the checkpoint of a step, and of the best checkpoint.
std::string checkpoint_name(int64_t step);
std::string best_name(int64_t step);

/// Finds or creates the folder for `config` on P ranks; called on rank 0. A derived name that is
/// taken gets a number; a name given by --name must be free. With --resume, the folder of that
/// checkpoint, or (auto) the last one of this name, else of that which version 0.2.0 derived; a run
/// that branches gets a new folder with the tables of that run. UserError when another process
/// writes there.
RunFolder open_run_folder(const TrainConfig& config, int ranks);

/// Appends the folder of a run to the file of --folders, where that is given; for rank 0.
void note_folder(const TrainConfig& config, const std::filesystem::path& run);

/// What open_run_folder() would open; path is empty where it would make a folder. Changes nothing.
/// UserError where a name is taken or a checkpoint is missing.
RunFolder find_run_folder(const TrainConfig& config, int ranks);

/// Removes a checkpoint. An interruption leaves either all of it or nothing that resumes.
void remove_checkpoint(const std::filesystem::path& checkpoint);

/// Removes all but the newest `kept` checkpoints (0: removes none) and, unless it is 0, all best
/// ones but that of step `best`.
void remove_old_checkpoints(const std::filesystem::path& folder, int64_t kept, int64_t best);

/// Removes the checkpoints of later steps, since a run resumed at `step` may continue differently.
void remove_newer_checkpoints(const std::filesystem::path& folder, int64_t step);

/// Removes the gradients that were saved in later steps, likewise.
void remove_newer_gradients(const std::filesystem::path& folder, int64_t step);

/// Makes the checkpoint `to` of links to the files of `from`, or of copies where the disk has no
/// links.
void link_checkpoint(const std::filesystem::path& from, const std::filesystem::path& to);

/// Keeps the checkpoint of `step` as the best one, too. Returns false when there is no such
/// checkpoint.
bool keep_best_checkpoint(const std::filesystem::path& folder, int64_t step);

/// The newest checkpoint below the argument of --resume; UserError when there is none.
std::filesystem::path checkpoint_to_resume(const std::filesystem::path& asked);

}  // namespace tw
