// tuning_cache.json: the convolution algorithms that a run measured as fastest, in its run folder.
#pragma once

#include <filesystem>
#include <functional>

#include "comm/communicator.h"

namespace tw {

/// Writes the tuning cache of `ctx` into `folder`; no file when it is empty.
void save_tuning_cache(Context& ctx, const std::filesystem::path& folder);

/// Rank 0 reads the tuning cache in `folder`; every rank's `ctx` takes it. False when there is none
/// or nothing changes. Collective, in `host`.
bool load_tuning_cache(Context& ctx, Context& host, Communicator& comm,
                       const std::filesystem::path& folder);

/// Calls plan() on every rank. On GPUs rank 0 plans and measures first, alone, since ranks that
/// share a GPU would disturb each other; the others then plan with its tuning cache. Collective, in
/// `host`.
void plan_consistently(Context& ctx, Context& host, Communicator& comm,
                       const std::function<void()>& plan);

}  // namespace tw
