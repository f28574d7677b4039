// Measures the local costs of an iteration: compute, selection, update.
#pragma once

#include "apps/advise/prediction.h"
#include "comm/communicator.h"

namespace tw {

struct MachineSettings {
  int64_t batch_size = 32;
  DType precision = DType::f32;
  double density = 0.001;
  int64_t steps = 5;  ///< measured steps; the result is their median
  Settings settings;
};

/// Measures forward and backward of `model` on generated images, and an optimizer step of every
/// registered sparsifier on one rank (`hierarchical`: in one node of `hierarchical.node` ranks).
/// All ranks of `comm` compute at the same time, as in training. Compute and whole step: seconds of
/// the slowest rank. Exchange: those of the fastest rank, which waits least for the others
/// (`hierarchical`: the fastest rank of the slowest node). Collective.
LocalCosts measure_local(Context& ctx, Communicator& comm, Model& model,
                         const MachineSettings& settings);

}  // namespace tw
