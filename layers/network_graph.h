// NetworkGraph: what a network computes in validation, as a list of operations, for other runtimes.
#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "engine/ops/pool.h"
#include "engine/plan/arena.h"

namespace tw {

/// Value 0 is the normalised images; operation i computes value i + 1 from earlier values. The last
/// value is the logits.
struct NetworkGraph {
  struct Conv2d {
    const Parameter *weight, *bias;  ///< bias: null if there is none
    int64_t kernel, stride, padding;
  };
  struct BatchNorm {
    const Parameter *gamma, *beta;
    const Parameter *mean, *variance;  ///< statistics
    float epsilon;
  };
  struct Linear {
    const Parameter *weight, *bias;
  };
  struct Relu {};
  struct Add {};
  struct GlobalAverage {};  ///< [N,H,W,C] -> [N,C]
  struct SubsamplePad {
    int64_t in, out, stride;  ///< channels; stride between kept pixels
  };
  using Operation = std::variant<Conv2d, BatchNorm, Linear, Relu, Add, GlobalAverage,
                                 ops::PoolParams, SubsamplePad>;
  struct Node {
    Operation operation;
    std::vector<size_t> inputs;  ///< values
  };

  /// Appends an operation and returns the value that it computes.
  size_t add(Operation operation, std::vector<size_t> inputs) {
    nodes.push_back({operation, std::move(inputs)});
    return nodes.size();
  }

  std::vector<Node> nodes;
};

}  // namespace tw
