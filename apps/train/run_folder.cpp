#include "apps/train/run_folder.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "engine/core/error.h"
#include "engine/io/event_file.h"
#include "engine/io/file.h"

namespace tw {

namespace fs = std::filesystem;

namespace {

std::string derived_name(const TrainConfig& config, int ranks) {
  return fmt::format("{}-{}-p{}-s{}", config.model, config.sparsifier, ranks, config.seed);
}

/// `base`, `base-2`, `base-3`, ...
fs::path numbered(const fs::path& base, int number) {
  return number == 1 ? base : fs::path(fmt::format("{}-{}", base.string(), number));
}

/// The last of the numbered folders that exists; empty if none does.
fs::path last_of(const fs::path& base) {
  fs::path last;
  for (int number = 1; fs::exists(numbered(base, number)); ++number) last = numbered(base, number);
  return last;
}

/// Whether a run in this folder ended before its first step, so that the folder can be reused.
bool without_a_step(const fs::path& path) {
  std::istringstream steps(read_text_if_any(path / "steps.csv"));
  std::string line;
  std::getline(steps, line);  // the header
  return fs::exists(path / "config.json") && !latest_checkpoint(path) && !std::getline(steps, line);
}

/// Creates the folder of a run. Returns false, and changes nothing, when it exists already.
bool create(const fs::path& path) {
  if (path.has_parent_path()) create_folders_durably(path.parent_path());
  std::error_code error;
  const bool created = fs::create_directory(path, error);
  check(!error, "[run] cannot create {}: {}", path.string(), error.message());
  return created;
}

/// Removes what writes that were cut off left in a folder.
void remove_parts(const fs::path& folder) {
  std::vector<fs::path> parts;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().ends_with(".part")) parts.push_back(entry.path());
  for (const fs::path& part : parts) fs::remove_all(part);
}

constexpr const char* kStep = "step-";
constexpr const char* kBest = "best-";

/// The checkpoints of a folder whose names begin with `kind`, the oldest first.
std::vector<fs::path> checkpoints_in(const fs::path& folder, const std::string& kind) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with(kind)) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

/// The temporary name of a checkpoint.
fs::path temporary_name(const fs::path& checkpoint) {
  return checkpoint.parent_path() / fmt::format(".{}.part", checkpoint.filename().string());
}

}  // namespace

std::string checkpoint_name(int64_t step) { return fmt::format("{}{:08}", kStep, step); }
std::string best_name(int64_t step) { return fmt::format("{}{:08}", kBest, step); }

void remove_checkpoint(const fs::path& checkpoint) {
  const fs::path part = temporary_name(checkpoint);
  fs::remove_all(part);
  rename_durably(checkpoint, part);
  fs::remove_all(part);
}

void remove_old_checkpoints(const fs::path& folder, int64_t kept, int64_t best) {
  const std::vector<fs::path> steps = checkpoints_in(folder, kStep);
  if (kept > 0)
    for (size_t i = 0; i + static_cast<size_t>(kept) < steps.size(); ++i)
      remove_checkpoint(steps[i]);
  if (best > 0)
    for (const fs::path& path : checkpoints_in(folder, kBest))
      if (path.filename() != best_name(best)) remove_checkpoint(path);
}

void remove_newer_checkpoints(const fs::path& folder, int64_t step) {
  remove_parts(folder);
  for (const char* kind : {kStep, kBest}) {
    const std::string last = fmt::format("{}{:08}", kind, step);
    for (const fs::path& path : checkpoints_in(folder, kind))
      if (path.filename() > last) remove_checkpoint(path);
  }
}

bool keep_best_checkpoint(const fs::path& folder, int64_t step) {
  const fs::path from = folder / checkpoint_name(step), to = folder / best_name(step);
  if (fs::exists(to)) return true;
  if (!fs::exists(from)) return false;
  const fs::path part = temporary_name(to);
  fs::remove_all(part);
  fs::create_directory(part);
  for (const fs::directory_entry& file : fs::directory_iterator(from)) {
    const fs::path copy = part / file.path().filename();
    std::error_code error;
    fs::create_hard_link(file.path(), copy, error);
    if (error) fs::copy_file(file.path(), copy);
    sync_to_disk(copy);
  }
  sync_to_disk(part);
  rename_durably(part, to);
  return true;
}

fs::path checkpoint_to_resume(const fs::path& asked) {
  check(fs::exists(asked), "[resume] {} does not exist{}", asked.string(), run_of_that_name(asked));
  const auto found = fs::is_directory(asked) ? latest_checkpoint(asked) : std::nullopt;
  check(found.has_value(),
        "[resume] {} holds no checkpoint (expected a run folder or one of its "
        "checkpoints/step-N)",
        asked.string());
  return *found;
}

namespace {

/// The checkpoint that --resume PATH names; UserError when it is not inside a run folder.
fs::path named_checkpoint(const fs::path& asked) {
  fs::path checkpoint = fs::absolute(checkpoint_to_resume(asked)).lexically_normal();
  if (!checkpoint.has_filename()) checkpoint = checkpoint.parent_path();  // a slash at the end
  check(checkpoint.parent_path().filename() == "checkpoints",
        "[resume] {} is not in the checkpoints folder of a run", checkpoint.string());
  return checkpoint;
}

/// The run's folder; creates it if necessary.
fs::path find_or_create(const TrainConfig& config, int ranks) {
  const fs::path base = fs::path(config.output_dir) /
                        (config.name.empty() ? derived_name(config, ranks) : config.name);
  if (config.resume == "auto") {
    const fs::path taken =
        config.name.empty() ? last_of(base) : (fs::exists(base) ? base : fs::path());
    if (!taken.empty()) return taken;
  }
  if (config.name.empty()) {
    int number = 1;
    while (!create(numbered(base, number))) ++number;
    return numbered(base, number);
  }
  check(create(base) || without_a_step(base),
        "[run] {} exists; choose another --name, or --resume auto to continue it", base.string());
  return base;
}

}  // namespace

/// Files of a run that a branch continues.
constexpr const char* kContinued[] = {"steps.csv",      "metrics.csv",       "distributions.csv",
                                      "histograms.csv", "tuning_cache.json", EventFile::kName};

RunFolder open_run_folder(const TrainConfig& config, int ranks) try {
  const bool named = !config.resume.empty() && config.resume != "auto";
  RunFolder folder;
  const bool continues = named && !config.branches;
  if (named) named_checkpoint(config.resume);  // its errors come before a new folder
  folder.path = continues ? named_checkpoint(config.resume).parent_path().parent_path()
                          : find_or_create(config, ranks);
  if (!config.eval_only) folder.lock = std::make_shared<FolderLock>(folder.path);
  if (!config.eval_only) {
    remove_parts(folder.path);
    create_folders_durably(folder.checkpoints());  // a run killed early may lack it
    sync_to_disk(folder.path.has_parent_path() ? folder.path.parent_path() : ".");
  }
  // after locking: the last holder of the lock may have added a checkpoint
  folder.checkpoint =
      named ? named_checkpoint(config.resume) : latest_checkpoint(folder.path).value_or(fs::path());
  if (config.branches)
    for (const char* name : kContinued) {
      const fs::path table = folder.checkpoint.parent_path().parent_path() / name;
      if (fs::exists(table))
        fs::copy_file(table, folder.file(name), fs::copy_options::overwrite_existing);
    }
  return folder;
} catch (const Fault& fault) {
  throw UserError(fault.what());  // no step has run: the folder cannot be written
}

}  // namespace tw
