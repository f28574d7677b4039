// Finds the checkpoints of a run.
#pragma once

#include <filesystem>
#include <optional>

namespace tw {

/// The newest complete checkpoint below `folder` (a run or its checkpoints folder, or a
/// checkpoint itself).
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder);

}  // namespace tw
