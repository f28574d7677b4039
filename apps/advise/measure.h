// Measures the local costs of an iteration: compute, selection, update.
#pragma once

#include "apps/advise/prediction.h"
#include "comm/communicator.h"

namespace tw {

struct MachineSettings {
  int64_t batch_size = 32;
  DType precision = DType::f32;
  double density = 0.001;
  int64_t steps = 5;  ///< measured steps; the median counts
  Settings settings;
};

/// Seconds of forward and backward of `model` on generated images and, for every registered
/// sparsifier, of an optimizer step on one rank, or in one node of `hierarchical.node` ranks with
/// `hierarchical`. All ranks of `comm` compute at the same time, as in training. Takes the time of
/// the slowest rank, except for an exchange within a node: there the time of the fastest rank,
/// which waits least for the others. Collective.
LocalCosts measure_local(Context& ctx, Communicator& comm, Model& model,
                         const MachineSettings& settings);

}  // namespace tw
