// algorithms.json: which algorithms a run measured as the fastest, kept beside its other files.
#pragma once

#include <filesystem>

#include "engine/context.h"

namespace tw {

/// Writes what ctx has measured; nothing when it measured nothing.
void save_algorithms(Context& ctx, const std::filesystem::path& folder);

/// Gives ctx the algorithms of the run in `folder`. False when it has none, or just those.
bool recall_algorithms(Context& ctx, const std::filesystem::path& folder);

}  // namespace tw
