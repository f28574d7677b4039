// Measurements of a step, merged over the ranks, their sums over an epoch, and the rows of
// steps.csv and metrics.csv.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/common/options.h"
#include "comm/collectives/collectives.h"
#include "engine/ops/loss.h"

namespace tw {

/// Seconds of each phase, without what overlaps another phase.
struct PhaseSeconds {
  double data = 0, forward = 0, backward = 0, select = 0, exchange = 0, update = 0;
  PhaseSeconds& operator+=(const PhaseSeconds& other);
  PhaseSeconds& operator/=(double divisor);
};

/// One step of one rank. Merged over ranks (StepLog), counts are sums and seconds are means. As
/// totals of several steps, all are sums, and step, lr and density are 0.
struct StepRecord {
  int64_t step = 0;  ///< 1 for the first
  double lr = 0, density = 0;
  double loss = 0;  ///< sum over images
  int64_t top1 = 0, images = 0;
  double nnz = 0, k = 0, bytes = 0;
  double seconds = 0;
  PhaseSeconds phases{};
  double wait = 0;  ///< part of phases.exchange spent waiting; see StepLog

  /// Adds what can be added.
  void add(const StepRecord& other);
  /// Totals for the checkpoint: a resumed epoch continues its sums.
  Json json() const;
  static StepRecord from_json(const Json& json);
};

extern const char* const kStepHeader;
extern const char* const kMetricsHeader;
/// What the names of the events of their rows begin with.
inline constexpr const char *kStepEvents = "step", *kEpochEvents = "epoch";
std::string step_row(const StepRecord& step, int64_t epoch);
/// Without validation (`val.count` 0) the validation columns are empty.
std::string metrics_row(int64_t epoch, double lr, double density, const StepRecord& totals,
                        const ops::LossSums& val);

/// Buffers the step records of this rank and merges them over the ranks, twenty steps at a time, so
/// that most steps need no collective for their row. The merged wait is the mean over the ranks of
/// the exchange time, minus the exchange time of the rank that arrives last. That rank has the
/// least time and does not wait; a wait that it measured is subtracted.
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
