// tuning_cache.json: the convolution kernels that a run chose by autotuning, in its run folder.
#pragma once

#include <filesystem>
#include <functional>

#include "comm/communicator.h"

namespace tw {

/// Writes the tuning cache of `ctx` into `folder`; no file when it is empty.
void save_tuning_cache(Context& ctx, const std::filesystem::path& folder);

/// Rank 0 reads the tuning cache in `folder` and sends it to all ranks, which store it in `ctx`.
/// Returns false when there is no cache or `ctx` has the same one. Collective.
bool load_tuning_cache(Context& ctx, Communicator& comm, const std::filesystem::path& folder);

/// Calls plan() on every rank. On GPUs rank 0 plans and measures first, alone, because ranks that
/// share a GPU would disturb each other's measurements; the others then plan with its tuning cache.
/// Collective.
void plan_consistently(Context& ctx, Communicator& comm, const std::function<void()>& plan);

}  // namespace tw
