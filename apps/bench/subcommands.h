// The subcommands of `bench`.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "apps/common/options.h"
#include "apps/common/resolve.h"
#include "comm/communicator.h"
#include "models/model.h"

namespace tw {

/// `bench comm`: times collectives and sparse exchanges on a transport or an emulated link, on the
/// ranks of `world` or on threads.
Subcommand bench_comm(Communicator& world);
/// `bench data`: speed of the JPEG pipeline, beside decoding whole images.
Subcommand bench_data();
/// `bench encode`: the speed of the formats of sparse messages, compared with a copy.
Subcommand bench_encode();
/// `bench select`: the cost of one selection with error feedback, by every selector.
Subcommand bench_select();
/// `bench step`: images per second of the training step alone (no data loading), one rank.
Subcommand bench_step();

/// What `bench step` measures, and how.
struct StepOptions {
  std::string model = kResnet20, csv;
  Precision precision = Precision::f32;
  Device device = Device::cpu;
  bool deterministic = false, recompute = false, floor = false;
  int64_t batch_size = 128, classes = 10, image_size = 32;
  int64_t threads = 1, steps = 10, warmup = 2;
};

/// On a GPU, with the step captured as one graph: images per second of the whole step, augmentation
/// included, and the graph nodes, launches and host synchronizations of a step.
nlohmann::ordered_json bench_captured_step(const StepOptions& options);

/// Times the passes of a planned model and writes `options.csv`, the profile that `advise
/// --compute-profile` reads. `scale_to` > 0: scaled to that many seconds in all, since kernels that
/// are timed one by one do not overlap.
void write_step_profile(Context& ctx, Model& model, const StepOptions& options,
                        double scale_to = 0);

}  // namespace tw
