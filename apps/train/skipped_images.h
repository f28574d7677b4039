// SkippedImages: the damaged images that a run skipped.
#pragma once

#include <set>
#include <string>

#include "apps/common/console.h"
#include "comm/communicator.h"
#include "data/dataset.h"

namespace tw {

class SkippedImages {
 public:
  /// Prints one line for each image that was skipped since the last call, on any rank, and the
  /// number of all. Collective.
  void report(Communicator& comm, const DataSplit& data, Console& console);

 private:
  std::set<std::string> lines_;
};

}  // namespace tw
