// `bench step --device cuda`: the training step on a GPU, captured as one graph.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "apps/bench/step.h"

namespace tw {

/// Images per second of the whole step, augmentation included, and the graph nodes, launches and
/// host synchronizations of a step.
nlohmann::ordered_json bench_captured_step(const StepOptions& options);

}  // namespace tw
