// Texts of all ranks, and a check that they are the same.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace tw {

/// Every rank's text, in rank order, on every rank.
std::vector<std::string> gather_texts(Communicator& comm, const std::string& text);

/// Compares `count` lines such as `density is 0.01` on all ranks, before anything else depends on
/// them; only hashes travel, and the first line that differs. UserError, the same on every rank,
/// that names this line, on the lowest rank that differs from rank 0.
void check_same_lines(Communicator& comm, size_t count,
                      const std::function<std::string(size_t)>& line);
void check_same_setup(Communicator& comm, const std::vector<std::string>& lines);

}  // namespace tw
