// Collectives for set-up and reports, outside the training step. `gather`, the sums and the
// comparison of texts are in comm/collectives.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "apps/common/options.h"
#include "comm/collectives/collectives.h"
#include "comm/collectives/same_lines.h"

namespace tw {

/// Runs `body` on every rank. If it throws UserError (or a file system error, which becomes one) on
/// any rank, all ranks throw the error of the lowest such rank; unless that is rank 0, with its
/// number, and its host if there are several.
void run_collectively(Communicator& comm, const std::function<void()>& body);

/// The text of the CollectiveFault that ends `body`, or empty. All ranks go on only together: where
/// the others do not throw one within half of the timeout, a rank throws a plain Fault, which ends
/// them before they time out. `world` is not that of ranks as threads.
std::string common_fault_of(const Communicator& world, const std::function<void()>& body);

/// Rank 0's text on every rank.
std::string broadcast_text(Communicator& comm, std::string text);

/// Lines for check_same_setup(): version and build.
std::vector<std::string> build_lines();
/// Lines for check_same_setup(): the present values of all options and settings of the table but
/// those of files and folders (kLocal).
std::vector<std::string> option_lines(const OptionTable& table);

/// Mean over ranks of vectors of equal length, the same bits on every rank.
std::vector<float> mean_over_ranks(Communicator& comm, std::span<const float> mine);

}  // namespace tw
