// Collectives for set-up and reports, outside the training step. `gather` and the sums are in
// comm/collectives.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/collectives/collectives.h"

namespace tw {

/// Runs `body` on every rank. If it throws UserError (or a file system error, which becomes one) on
/// any rank, all ranks throw the error of the lowest such rank.
void run_collectively(Communicator& comm, const std::function<void()>& body);

/// Every rank's text, in rank order, on every rank.
std::vector<std::string> gather_texts(Communicator& comm, const std::string& text);

/// Rank 0's text on every rank.
std::string broadcast_text(Communicator& comm, std::string text);

/// Compares lines such as `density is 0.01` on all ranks, before anything else depends on them.
/// UserError, the same on every rank, that names the first line that differs, on the lowest rank
/// that differs from rank 0.
void check_same_setup(Communicator& comm, const std::vector<std::string>& lines);

/// The error of check_same_setup for the texts of all ranks, each with its lines ended by \n; empty
/// if all texts are equal.
std::string first_difference(const std::vector<std::string>& texts);

/// Mean over ranks of vectors of equal length, the same bits on every rank.
std::vector<float> mean_over_ranks(Communicator& comm, std::span<const float> mine);

}  // namespace tw
