// `bench step`: images per second of the training step alone (no data loading), one rank.
#pragma once

#include "apps/common/options.h"
#include "apps/common/resolve.h"
#include "models/model.h"

namespace tw {

/// What to measure, and how.
struct StepOptions {
  std::string model = kResnet20, csv;
  Precision precision = Precision::f32;
  Device device = Device::cpu;
  bool deterministic = false, recompute = false, floor = false;
  int64_t batch_size = 128, classes = 10, image_size = 32;
  int64_t threads = 1, steps = 10, warmup = 2;
};

Subcommand bench_step();

/// Times the passes of a planned model and writes `options.csv`, the profile that `advise
/// --compute-profile` reads. `scale_to` > 0: scaled to that many seconds in all, since kernels that
/// are timed one by one do not overlap.
void write_step_profile(Context& ctx, Model& model, const StepOptions& options,
                        double scale_to = 0);

}  // namespace tw
