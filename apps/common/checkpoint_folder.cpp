#include "apps/common/checkpoint_folder.h"

#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/io/file.h"
#include "engine/io/json.h"

namespace tw {

namespace fs = std::filesystem;

namespace {

/// Whether every file of a checkpoint is there, undamaged and of its step.
bool is_whole(const fs::path& checkpoint) try {
  const SafetensorsReader weights(checkpoint / "model.safetensors");
  const auto run =
      parse_json<nlohmann::json>(weights.metadata().at("thinwire"), checkpoint.string());
  const std::string step = std::to_string(integer_of(run.at("step")));
  const auto whole = [&](const std::string& part) {
    const SafetensorsReader file(checkpoint / (part + ".safetensors"));
    return file.sealed() && file.metadata().at("step") == step;
  };
  bool all = weights.sealed() && whole("momentum");
  const int64_t ranks = integer_of(run.at("ranks"));
  for (int64_t r = 0; all && r < ranks; ++r) all = whole(fmt::format("rank-{}", r));
  return all;
} catch (const UserError&) {
  return false;
} catch (const nlohmann::json::exception&) {
  return false;
} catch (const std::out_of_range&) {  // no description
  return false;
}

/// The newest whole checkpoint in `folder` before `end`; empty if there is none.
fs::path newest_whole(const fs::path& folder, int64_t end) {
  std::map<int64_t, fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (const std::optional<int64_t> step = step_in(entry.path()); step && *step < end)
      found[*step] = entry.path();
  while (!found.empty() && !is_whole(found.rbegin()->second)) found.erase(std::prev(found.end()));
  return found.empty() ? fs::path() : found.rbegin()->second;
}

}  // namespace

std::optional<int64_t> step_in(const fs::path& checkpoint, std::string_view kind) {
  const std::string name = checkpoint.filename().string();
  if (!name.starts_with(kind)) return std::nullopt;
  const std::optional<int64_t> step = number_in<int64_t>(name.substr(kind.size()));
  return step >= 0 ? step : std::nullopt;
}

std::optional<fs::path> latest_checkpoint(const fs::path& folder) {
  const bool in_run = folder.parent_path().filename() == "checkpoints";
  if (fs::exists(folder / "model.safetensors") || (in_run && step_in(folder))) return folder;
  const fs::path below = fs::exists(folder / "checkpoints") ? folder / "checkpoints" : folder;
  if (!fs::is_directory(below)) return std::nullopt;
  std::optional<fs::path> latest;
  for (const fs::directory_entry& entry : fs::directory_iterator(below)) {
    const std::optional<int64_t> step = step_in(entry.path());
    if (!step || !entry.is_directory()) continue;
    if (!latest || *step > *step_in(*latest)) latest = entry.path();
  }
  return latest;
}

std::optional<fs::path> newest_whole_checkpoint(const fs::path& folder) {
  std::optional<fs::path> newest = latest_checkpoint(folder);
  if (newest && !is_whole(*newest))
    if (fs::path whole = newest_whole(newest->parent_path(), *step_in(*newest)); !whole.empty())
      newest = std::move(whole);
  return newest;
}

void check_exists(const fs::path& path, const char* area) {
  if (fs::exists(path)) return;                  // before the message is made, which lists folders
  const fs::path run = fs::path("runs") / path;  // the default of train --output-dir
  const bool there = path.is_relative() && fs::is_directory(run);
  const std::string other = there ? "; " + run.string() + " does" : nearest_beside(path);
  fail("[{}] {} does not exist{}", area, path.string(), other);
}

fs::path weights_file(const fs::path& path, const char* area) {
  check_exists(path, area);
  if (!fs::is_directory(path)) return path;
  const std::optional<fs::path> checkpoint = latest_checkpoint(path);
  check(checkpoint.has_value(),
        "[{}] {} holds no checkpoint (expected a run folder, one of its checkpoints/step-N, or a "
        "safetensors file)",
        area, path.string());
  return *checkpoint / "model.safetensors";
}

SafetensorsReader read_weights_file(const fs::path& file, std::string_view taker) try {
  return SafetensorsReader(file);
} catch (const UserError& error) {
  const bool in_checkpoint = file.filename() == "model.safetensors";
  fail("{}{}", error.what(), in_checkpoint ? older_if_damaged(file.parent_path(), taker) : "");
}

std::string older_if_damaged(const fs::path& checkpoint, std::string_view taker) {
  if (checkpoint.empty() || is_whole(checkpoint)) return "";
  const fs::path newest =
      newest_whole(checkpoint.has_parent_path() ? checkpoint.parent_path() : ".",
                   step_in(checkpoint).value_or(std::numeric_limits<int64_t>::max()));
  if (newest.empty()) return "";
  return fmt::format("; {} is whole: {} {} uses it", newest.string(), taker, shell_word(newest));
}

}  // namespace tw
