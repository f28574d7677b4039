// StepLog: buffers the step records of this rank and merges them over the ranks, twenty steps at a
// time, so that most steps need no collective for their row. The merged wait is the mean over
// the ranks of the exchange time, minus the exchange time of the rank that arrives last. That rank
// has the least time and does not wait; a wait that it measured is subtracted.
#pragma once

#include <functional>
#include <vector>

#include "apps/train/tables/records.h"
#include "comm/collectives/collectives.h"

namespace tw {

class StepLog {
 public:
  /// At a flush, `merged` is called for every buffered step, in order, on every rank.
  explicit StepLog(std::function<void(const StepRecord&)> merged);

  /// Adds a step; flushes when the buffer is full, on all ranks at the same step.
  void add(Communicator& comm, const StepRecord& record);
  /// Merges the buffered steps. Collective.
  void flush(Communicator& comm);

 private:
  std::function<void(const StepRecord&)> merged_;
  std::vector<StepRecord> waiting_;
  GatheredBlocks blocks_;
};

}  // namespace tw
