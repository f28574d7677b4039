#include "apps/train/run_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "apps/common/outputs.h"
#include "engine/core/error.h"
#include "engine/core/stopwatch.h"
#include "engine/io/event_file.h"
#include "engine/io/file.h"
#include "engine/io/json.h"

namespace tw {

namespace fs = std::filesystem;

FolderLock::FolderLock(const fs::path& folder, double patience)
    : file_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (file_ < 0) throw fs::filesystem_error("", folder, {errno, std::generic_category()});
  Stopwatch watch;
  while (flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    if (watch.total() >= patience) {
      close(file_);
      fail("[run] {} is in use by another process", folder.string());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void FolderLock::check_place(const fs::path& folder) const {
  struct stat locked {
  }, there{};
  const bool same = fstat(file_, &locked) == 0 && stat(folder.c_str(), &there) == 0 &&
                    locked.st_dev == there.st_dev && locked.st_ino == there.st_ino;
  check<Fault>(same, "[run] {} was renamed or removed while the run went on", folder.string());
}

FolderLock::~FolderLock() {
  if (file_ >= 0) close(file_);
}

void refuse_folder(const Fault& fault) {
  if (dynamic_cast<const DiskFault*>(&fault)) throw;
  throw UserError(fault.what());
}

std::string branched_from(const fs::path& folder) {
  const Json config =
      parse_json_if_valid<Json>(read_text_if_any(folder / "config.json", kMostJson));
  const Json::json_pointer place("/run/branched_from");
  const bool known = config.is_object() && config.contains(place) && config[place].is_string();
  return known ? config[place].get<std::string>() : "";
}

namespace {

constexpr const char* kStep = "step-";
constexpr const char* kBest = "best-";

std::string derived_name(const TrainConfig& config) {
  return fmt::format("{}-{}-s{}", config.model, config.sparsifier, config.seed);
}

/// The derived name of version 0.2.0.
std::string old_derived_name(const TrainConfig& config, int ranks) {
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

/// A file that a run writes into its folder.
struct RunFile {
  const char* name;
  bool continued = true;  ///< a branch begins with a copy of it
};
constexpr RunFile kFiles[] = {{"config.json", false},
                              {"run.log", false},
                              {"steps.csv"},
                              {"metrics.csv"},
                              {"distributions.csv"},
                              {"histograms.csv"},
                              {"residual_histograms.csv"},
                              {"tuning_cache.json"},
                              {"summary.json", false},
                              {kProbe, false},
                              {EventFile::kName}};

/// The files that a run writes into a complete checkpoint.
constexpr std::string_view kCheckpointFiles[] = {"validated.json", "model.safetensors"};

/// Whether `name` is that of a file or checkpoint whose writing was cut off: FILE.PID.part or
/// .step-N.part.
bool is_part(const std::string& name) {
  constexpr std::string_view kEnd = ".part";
  if (!name.ends_with(kEnd)) return false;
  const std::string whole = name.substr(0, name.size() - kEnd.size());
  if (whole.starts_with('.'))
    return step_in(whole.substr(1), kStep).has_value() ||
           step_in(whole.substr(1), kBest).has_value();
  const auto is_part_of = [&](std::string_view file) {
    return step_in(whole, fmt::format("{}.", file)).has_value();
  };
  return std::ranges::any_of(kFiles, is_part_of, &RunFile::name) ||
         std::ranges::any_of(kCheckpointFiles, is_part_of);
}

/// Whether a folder has nothing but what a run makes.
bool only_own(const fs::path& folder) {
  return std::ranges::all_of(fs::directory_iterator(folder), [](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    return name == "checkpoints" || is_part(name) ||
           std::ranges::find(kFiles, name, &RunFile::name) != std::end(kFiles);
  });
}

/// Whether a run in this folder ended before its first step, so that the folder can be reused. The
/// tables of a branch begin with the rows of another run.
bool without_a_step(const fs::path& path) {
  if (latest_checkpoint(path)) return false;
  if (!fs::exists(path / "config.json")) return fs::exists(path / "checkpoints") && only_own(path);
  std::istringstream steps(read_text_if_any(path / "steps.csv"));
  std::string line;
  std::getline(steps, line);  // the header
  return !std::getline(steps, line) || !branched_from(path).empty();
}

/// Creates the folder of a run. Returns false, and changes nothing, when it exists already.
bool create(const fs::path& path) {
  if (path.has_parent_path()) create_folders_durably(path.parent_path());
  std::error_code error;
  const bool created = fs::create_directory(path, error);
  if (error) throw fs::filesystem_error("", path, error);
  return created;
}

/// Removes what writes and starts that were cut off left in a folder.
void remove_parts(const fs::path& folder) {
  std::vector<fs::path> parts;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (const std::string name = entry.path().filename().string(); is_part(name) || name == kProbe)
      parts.push_back(entry.path());
  for (const fs::path& part : parts) fs::remove_all(part);
}

/// The checkpoints of a folder whose names begin with `kind`, the oldest first.
std::vector<fs::path> checkpoints_in(const fs::path& folder, const std::string& kind) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (step_in(entry.path(), kind)) found.push_back(entry.path());
  std::ranges::sort(found, {}, [&](const fs::path& path) { return *step_in(path, kind); });
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
  for (const char* kind : {kStep, kBest}) {
    for (const fs::path& path : checkpoints_in(folder, kind))
      if (*step_in(path, kind) > step) remove_checkpoint(path);
  }
}

void remove_newer_gradients(const fs::path& folder, int64_t step) {
  if (!fs::is_directory(folder)) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const std::optional<int64_t> of = step_in(name.substr(0, name.find("-rank-")));
    if (of && *of > step) fs::remove(entry.path());
  }
}

void link_checkpoint(const fs::path& from, const fs::path& to) {
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
}

bool keep_best_checkpoint(const fs::path& folder, int64_t step) {
  const fs::path from = folder / checkpoint_name(step), to = folder / best_name(step);
  if (fs::exists(to)) return true;
  if (!fs::exists(from)) return false;
  link_checkpoint(from, to);
  return true;
}

fs::path checkpoint_to_resume(const fs::path& asked) {
  check_exists(asked, "resume");
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

/// UserError unless a run in this folder ended before its first step.
void check_free(const fs::path& path) {
  check(without_a_step(path),
        "[run] {} exists; choose another --name, or --resume auto to continue it", path.string());
}

/// UserError unless --resume auto may continue, or begin, a run in this folder.
void check_continues(const fs::path& path) {
  if (latest_checkpoint(path)) return;
  check(!fs::exists(path / "summary.json"),
        "[run] {} has ended and has no checkpoint; choose another --name", path.string());
  const std::string from = branched_from(path);
  check(from.empty(),
        "[run] {} ended before its first checkpoint; it branched from {}: repeat the command with "
        "--resume {}",
        path.string(), from, shell_word(from));
}

/// Takes the newest whole checkpoint of the folder.
void take_checkpoint(RunFolder& run) {
  run.checkpoint = newest_whole_checkpoint(run.path).value_or(fs::path());
  const fs::path newest = latest_checkpoint(run.path).value_or(fs::path());
  if (newest != run.checkpoint) run.damaged = newest;
}

/// The folder of a new run, before a number is added to a derived name.
fs::path base_of(const TrainConfig& config) {
  return fs::path(config.output_dir) / (config.name.empty() ? derived_name(config) : config.name);
}

/// The folder that --resume auto continues; empty if there is none.
fs::path last_run(const TrainConfig& config, int ranks) {
  const fs::path base = base_of(config);
  if (!config.name.empty()) return fs::exists(base) ? base : fs::path();
  if (fs::path last = last_of(base); !last.empty()) return last;
  const fs::path old = last_of(fs::path(config.output_dir) / old_derived_name(config, ranks));
  return !old.empty() && latest_checkpoint(old) ? old : fs::path();
}

/// Makes the folder of a new run, or takes that of a run which ended before its first step.
void make_folder(RunFolder& run, const TrainConfig& config) {
  const fs::path base = base_of(config);
  int number = 1;
  bool made = create(base);
  while (!made && config.name.empty()) made = create(numbered(base, ++number));
  run.path = numbered(base, number);
  if (made) run.created = std::make_shared<NewFolder>(run.path);
}

/// Removes what was cut off in the folder and its checkpoints.
void clear(const RunFolder& run) {
  remove_parts(run.path);
  create_folders_durably(run.checkpoints());  // a run killed early may lack it
  remove_parts(run.checkpoints());
  for (const char* kind : {kStep, kBest})
    for (const fs::path& checkpoint : checkpoints_in(run.checkpoints(), kind))
      if (fs::is_directory(checkpoint)) remove_parts(checkpoint);
  sync_to_disk(run.path.has_parent_path() ? run.path.parent_path() : ".");
}

}  // namespace

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!kept_) fs::remove_all(path_, ignored);
}

bool RunFolder::branches() const {
  return !branched_from.empty() && fs::path(branched_from).filename() == checkpoint.filename();
}

namespace {

/// find_run_folder() without the checkpoint that --resume auto takes: to see that it is whole, all
/// of it is read.
RunFolder located(const TrainConfig& config, int ranks) {
  RunFolder run;
  if (config.resumes_path()) run.checkpoint = named_checkpoint(config.resume);
  if (config.resumes_path() && !config.branches) {
    run.path = run.checkpoint.parent_path().parent_path();
    check(!config.is_flag("output-dir") || same_place(config.output_dir, run.path.parent_path()),
          "[options] output-dir is {}, but --resume continues in {}; with --name in a new folder",
          config.output_dir, run.path.string());
  } else if (config.resumes_last()) {
    run.path = last_run(config, ranks);
    if (run.path.empty()) return run;
    if (!config.eval_only) check_continues(run.path);
  } else if (const fs::path base = base_of(config); !config.name.empty() && fs::exists(base)) {
    check_free(base);
  }
  if (config.branches)
    run.branched_from = run.checkpoint.string();
  else if (!run.path.empty())
    run.branched_from = branched_from(run.path);
  return run;
}

}  // namespace

RunFolder find_run_folder(const TrainConfig& config, int ranks) {
  RunFolder run = located(config, ranks);
  if (config.resumes_last() && !run.path.empty()) take_checkpoint(run);
  return run;
}

void note_folder(const TrainConfig& config, const fs::path& run) {
  if (!config.folders.empty())
    GrowingFile(config.folders, GrowingFile::Start::append).write(run.string() + "\n");
}

RunFolder open_run_folder(const TrainConfig& config, int ranks) try {
  RunFolder run = located(config, ranks);
  const bool continues = !run.path.empty();
  check(!config.eval_only || !config.resumes_last() || !config.pretrained.empty() ||
            (continues && latest_checkpoint(run.path)),
        "[resume] {} has no checkpoint to validate",
        (continues ? run.path : base_of(config)).string());
  if (!continues) make_folder(run, config);
  if (!config.eval_only) {
    try {
      run.lock = std::make_shared<FolderLock>(run.path);
    } catch (const UserError&) {
      if (run.created) run.created->keep();  // another process trains there
      throw;
    }
    if (!continues && !(run.created && fs::is_empty(run.path))) {  // or has done so
      if (run.created) run.created->keep();
      config.resumes_last() ? check_continues(run.path) : check_free(run.path);
    }
    clear(run);
  }
  // after locking: the last holder of the lock may have added a checkpoint
  if (config.resumes_path())
    run.checkpoint = named_checkpoint(config.resume);
  else
    take_checkpoint(run);
  if (config.eval_only) return run;
  note_folder(config, run.path);
  if (!config.branches) return run;
  run.branched_from = run.checkpoint.string();
  for (const RunFile& file : kFiles) {
    const fs::path from = run.checkpoint.parent_path().parent_path() / file.name;
    if (file.continued && fs::exists(from))
      fs::copy_file(from, run.file(file.name), fs::copy_options::overwrite_existing);
  }
  return run;
} catch (const Fault& fault) {
  refuse_folder(fault);
}

}  // namespace tw
