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
  /// Prints one line for each class of which images were skipped for the first time since the last
  /// call, on any rank, and the number of all. Collective.
  void report(Communicator& comm, const DataSplit& data, Console& console);

 private:
  std::set<std::string> lines_;  // class/description
};

}  // namespace tw
