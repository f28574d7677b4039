#include "apps/common/checkpoint_folder.h"

namespace tw {

namespace fs = std::filesystem;

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

std::string run_of_that_name(const fs::path& name) {
  const fs::path run = fs::path("runs") / name;  // the default of train --output-dir
  return name.is_relative() && fs::is_directory(run) ? "; " + run.string() + " does" : "";
}

}  // namespace tw
