#include "apps/train/run_folder.h"

#include <fmt/core.h>

#include <fstream>

#include "engine/core/error.h"

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
  std::ifstream steps(path / "steps.csv");
  std::string line;
  std::getline(steps, line);  // the header
  return fs::exists(path / "config.json") && !latest_checkpoint(path) && !std::getline(steps, line);
}

/// Creates the folder of a run. Returns false, and changes nothing, when it exists already.
bool create(const fs::path& path) {
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  const bool created = !error && fs::create_directory(path, error);
  if (created) fs::create_directory(path / "checkpoints", error);
  check(!error, "[run] cannot create {}: {}", path.string(), error.message());
  return created;
}

}  // namespace

std::optional<fs::path> latest_checkpoint(const fs::path& folder) {
  if (fs::exists(folder / "model.safetensors")) return folder;
  const fs::path below = fs::exists(folder / "checkpoints") ? folder / "checkpoints" : folder;
  if (!fs::is_directory(below)) return std::nullopt;
  std::optional<fs::path> latest;  // names are zero-padded: the largest is the newest
  for (const fs::directory_entry& entry : fs::directory_iterator(below)) {
    const bool complete = entry.path().filename().string().starts_with("step-") &&
                          fs::exists(entry.path() / "model.safetensors");
    if (complete && (!latest || entry.path() > *latest)) latest = entry.path();
  }
  return latest;
}

fs::path checkpoint_to_resume(const fs::path& asked) {
  check(fs::exists(asked), "[resume] {} does not exist", asked.string());
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
    if (!taken.empty()) {
      fs::create_directories(taken / "checkpoints");  // a run killed early may lack it
      return taken;
    }
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
constexpr const char* kContinued[] = {"steps.csv", "metrics.csv", "distributions.csv",
                                      "histograms.csv", "tuning_cache.json"};

RunFolder open_run_folder(const TrainConfig& config, int ranks) {
  const bool named = !config.resume.empty() && config.resume != "auto";
  RunFolder folder;
  const bool continues = named && !config.branches;
  if (named) named_checkpoint(config.resume);  // its errors come before a new folder
  folder.path = continues ? named_checkpoint(config.resume).parent_path().parent_path()
                          : find_or_create(config, ranks);
  if (!config.eval_only) folder.lock = std::make_shared<FolderLock>(folder.path);
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
}

}  // namespace tw
