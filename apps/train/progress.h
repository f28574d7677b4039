// Progress: recent speed and loss of a run, and the time to its end, as a line of text.
#pragma once

#include <cstdint>
#include <string>

#include "apps/train/config.h"
#include "apps/train/tables/records.h"

namespace tw {

/// Where a run is.
struct Place {
  int64_t epoch = 0, batch = 0;  ///< finished epochs; finished steps of the present one
  int64_t batches = 0;           ///< steps of an epoch
  int64_t step = 0;              ///< finished steps of the run
  int64_t to_validate = 0;       ///< batches of a validation
  int64_t validated = -1;        ///< batches; -1: the run trains
};

class Progress {
 public:
  Progress(const TrainConfig& config, int ranks) : config_(config), ranks_(ranks) {}

  /// Adds a step of this rank.
  void add(const StepRecord& step);
  /// Adds a step merged over the ranks, whose bytes replace those that this rank suggests.
  void add_merged(const StepRecord& step);
  /// Adds seconds that steps took, with all that happened between them.
  void add_time(int64_t steps, double seconds);
  void add_validation(double seconds) { validation_ = seconds; }

  /// `epoch 2/10 |####....| 34/100  loss 1.2345  top-1 0.543  0.123 s/step  520 images/s  12 %
  /// exchange  1.5 MiB/s  ETA 4:05` in one line. Parts that do not fit are left out, the bar first.
  std::string line(const Place& at, int columns) const;

 private:
  /// Sums in which a step counts less the older it is, over about twenty steps.
  struct Recent {
    double weight = 0, sum = 0;
    void add(double value, double times = 1);
    double mean() const { return weight > 0 ? sum / weight : 0; }
  };
  /// Seconds of a validation: those of the last one, or of as many forward passes, each a third of
  /// a step.
  double validation_seconds(const Place& at) const;
  /// Seconds to the end of the run.
  double seconds_left(const Place& at) const;

  TrainConfig config_;
  double ranks_;
  Recent loss_, top1_, images_, seconds_, exchange_, bytes_, merged_bytes_, wall_;
  double validation_ = -1;  ///< seconds; -1: none yet
};

}  // namespace tw
