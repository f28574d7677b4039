// `bench step`: images per second of the training step alone (no data loading), one rank.
#pragma once

#include "apps/common/subcommand.h"

namespace tw {

/// What to measure, and how.
struct StepOptions {
  std::string model = "resnet20", precision = "f32", device = "cpu";
  bool deterministic = false, recompute = false, floor = false;
  int64_t batch_size = 128, classes = 10, image_size = 32;
  int64_t threads = 1, steps = 10, warmup = 2;
};

Subcommand bench_step();

}  // namespace tw
