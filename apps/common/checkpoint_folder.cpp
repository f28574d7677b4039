#include "apps/common/checkpoint_folder.h"

#include <charconv>

#include "engine/core/error.h"

namespace tw {

namespace fs = std::filesystem;

std::optional<int64_t> step_in(const fs::path& checkpoint, std::string_view kind) {
  const std::string name = checkpoint.filename().string();
  if (!name.starts_with(kind)) return std::nullopt;
  const char* const end = name.data() + name.size();
  int64_t step = -1;
  const auto [stop, error] = std::from_chars(name.data() + kind.size(), end, step);
  return error == std::errc{} && stop == end && step >= 0 ? std::optional(step) : std::nullopt;
}

std::optional<fs::path> latest_checkpoint(const fs::path& folder) {
  if (fs::exists(folder / "model.safetensors")) return folder;
  const fs::path below = fs::exists(folder / "checkpoints") ? folder / "checkpoints" : folder;
  if (!fs::is_directory(below)) return std::nullopt;
  std::optional<fs::path> latest;
  for (const fs::directory_entry& entry : fs::directory_iterator(below)) {
    const std::optional<int64_t> step = step_in(entry.path());
    if (!step || !fs::exists(entry.path() / "model.safetensors")) continue;
    if (!latest || *step > *step_in(*latest)) latest = entry.path();
  }
  return latest;
}

fs::path weights_file(const fs::path& path, const char* area) {
  check(fs::exists(path), "[{}] {} does not exist{}", area, path.string(), run_of_that_name(path));
  if (!fs::is_directory(path)) return path;
  const std::optional<fs::path> checkpoint = latest_checkpoint(path);
  check(checkpoint.has_value(),
        "[{}] {} holds no checkpoint (expected a run folder, one of its checkpoints/step-N, or a "
        "safetensors file)",
        area, path.string());
  return *checkpoint / "model.safetensors";
}

std::string run_of_that_name(const fs::path& name) {
  const fs::path run = fs::path("runs") / name;  // the default of train --output-dir
  return name.is_relative() && fs::is_directory(run) ? "; " + run.string() + " does" : "";
}

}  // namespace tw
