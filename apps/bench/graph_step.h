// The training step on a GPU, as `bench step --device cuda` measures it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace tw {

struct GraphBench {
  std::string model, precision;
  int64_t batch_size, image_size, classes, steps, warmup;
  bool deterministic, recompute, floor;
};

/// Images/s of the whole step, augmentation included, launched as one graph; what a launch holds.
nlohmann::ordered_json bench_graph_step(const GraphBench& bench);

}  // namespace tw
