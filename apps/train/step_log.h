// StepLog: keeps this rank's step records and merges them over ranks now and then, so that a step
// pays nothing for its own row.
#pragma once

#include <functional>
#include <vector>

#include "apps/train/records.h"
#include "comm/collectives/collectives.h"

namespace tw {

class StepLog {
 public:
  /// `merged` is called for every step, in order, on every rank, at the next flush.
  explicit StepLog(std::function<void(const StepRecord&)> merged);

  /// Adds a step; flushes by itself when enough have gathered (the same step on all ranks).
  void add(Context& ctx, Communicator& comm, const StepRecord& record);
  /// Merges everything that is waiting. Collective.
  void flush(Context& ctx, Communicator& comm);

 private:
  std::function<void(const StepRecord&)> merged_;
  std::vector<StepRecord> waiting_;
  GatheredBlocks blocks_;
};

}  // namespace tw
