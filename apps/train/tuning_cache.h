// tuning_cache.json: which convolution algorithms a run measured as the fastest, kept beside its
// other files.
#pragma once

#include <filesystem>
#include <functional>

#include "comm/communicator.h"

namespace tw {

/// Writes what ctx has measured; nothing when it measured nothing.
void save_tuning_cache(Context& ctx, const std::filesystem::path& folder);

/// Gives every rank's ctx the algorithms of the run in `folder`, which rank 0 reads. False when it
/// has none, or just those. Collective.
bool load_tuning_cache(Context& ctx, Context& host, Communicator& comm,
                       const std::filesystem::path& folder);

/// Calls plan() on every rank. Ranks that share a GPU would measure each other, so rank 0 measures
/// alone, and the others plan with what it found; on the CPU nothing is picked by the clock.
/// Collective; `host` carries it.
void plan_consistently(Context& ctx, Context& host, Communicator& comm,
                       const std::function<void()>& plan);

}  // namespace tw
