// Measurements of a step, their sums over an epoch, and the rows of steps.csv and metrics.csv.
#pragma once

#include <cstdint>
#include <string>

#include "apps/common/options.h"
#include "engine/ops/loss.h"

namespace tw {

/// Seconds of each phase, without what overlaps another phase.
struct PhaseSeconds {
  double data = 0, forward = 0, backward = 0, select = 0, exchange = 0, update = 0;
  PhaseSeconds& operator+=(const PhaseSeconds& other);
  PhaseSeconds& operator/=(double divisor);
};

/// One step of one rank. Merged over ranks (StepLog), counts are sums and seconds are means.
struct StepRecord {
  int64_t step = 0;  ///< 1 for the first
  double lr = 0, density = 0;
  double loss = 0;  ///< sum over images
  int64_t top1 = 0, images = 0;
  double nnz = 0, k = 0, bytes = 0;
  double seconds = 0;
  PhaseSeconds phases;
  double wait = 0;  ///< part of phases.exchange spent waiting; see StepLog
};

/// Sums over the steps of an epoch.
struct EpochTotals {
  double loss = 0;
  int64_t top1 = 0, images = 0;
  double nnz = 0, k = 0, bytes = 0, seconds = 0;
  PhaseSeconds phases;
  double wait = 0;

  void add(const StepRecord& step);
  /// For the checkpoint: a resumed epoch continues its sums.
  Json json() const;
  static EpochTotals from_json(const Json& json);
};

extern const char* const kStepHeader;
extern const char* const kMetricsHeader;
/// What the names of the events of their rows begin with.
inline constexpr const char *kStepEvents = "step", *kEpochEvents = "epoch";
std::string step_row(const StepRecord& step, int64_t epoch);
/// Without validation (`val.count` 0) the validation columns are empty.
std::string metrics_row(int64_t epoch, double lr, double density, const EpochTotals& totals,
                        const ops::LossSums& val);

}  // namespace tw
