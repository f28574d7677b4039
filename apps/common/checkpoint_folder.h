// Finds the checkpoints of a run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tw {

/// The newest complete checkpoint below `folder` (a run or its checkpoints folder, or a
/// checkpoint itself).
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder);

/// For the error of a folder that does not exist: `; runs/NAME does`, or nothing.
std::string run_of_that_name(const std::filesystem::path& name);

}  // namespace tw
