// Which damaged images a run left out.
#pragma once

#include <set>
#include <string>

#include "apps/common/console.h"
#include "comm/communicator.h"
#include "data/dataset.h"

namespace tw {

class SkippedImages {
 public:
  /// Prints what the ranks' data complained of and no earlier call printed, one line each, and how
  /// many there were by now. Collective.
  void report(Context& ctx, Communicator& comm, const DataSplit& data, Console& console);

 private:
  std::set<std::string> lines_;
};

}  // namespace tw
