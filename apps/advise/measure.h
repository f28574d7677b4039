// Measures what this machine takes for its part of an iteration.
#pragma once

#include "apps/advise/prediction.h"
#include "comm/communicator.h"

namespace tw {

struct MachineSettings {
  int64_t batch_size = 32;
  DType precision = DType::f32;
  double density = 0.001;
  int64_t steps = 5;  ///< measured ones; the median counts
  Settings settings;
};

/// Seconds of forward and backward of `model` on generated images and, for every registered
/// algorithm, of everything an optimizer step does at one rank, or in one node with `hierarchical`
/// (`hierarchical.node` neighbours). All ranks of `comm` compute at the same time, as in training.
/// The slowest counts; in exchanges, for which all ranks meet, the one that is through first, whose
/// time is least disturbed by the others'. Collective.
LocalCosts measure_local(Context& ctx, Communicator& comm, Model& model,
                         const MachineSettings& settings);

}  // namespace tw
