// Which damaged images a run left out.
#pragma once

#include "apps/support/console.h"
#include "comm/communicator.h"
#include "data/dataset.h"

namespace tw {

class SkippedImages {
 public:
  /// Prints what any rank's data complained of since the last call, one line each, and how many
  /// there were by now. Collective.
  void report(Context& ctx, Communicator& comm, const DataSplit& data, Console& console);

 private:
  int64_t count_ = 0;
};

}  // namespace tw
