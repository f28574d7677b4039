// Small things the ranks of a run do together, outside the training step.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/collectives/collectives.h"

namespace tw {

/// Runs `body` on this rank; when it throws UserError (or a file system error, which becomes one)
/// anywhere, every rank throws that same error (the lowest rank's), so that all end alike.
void run_collectively(Context& ctx, Communicator& comm, const std::function<void()>& body);

/// Every rank's text, in rank order, on every rank.
std::vector<std::string> gather_texts(Context& ctx, Communicator& comm, const std::string& text);

/// Rank 0's text on every rank.
std::string broadcast_text(Context& ctx, Communicator& comm, std::string text);

/// Mean over ranks of equally long vectors, the same bits everywhere.
std::vector<float> mean_over_ranks(Context& ctx, Communicator& comm, std::span<const float> mine);

}  // namespace tw
