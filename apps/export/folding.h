// Folds a batch norm, which in validation scales and shifts each channel, into a convolution.
#pragma once

#include <span>

#include "engine/io/weights.h"
#include "layers/network_graph.h"

namespace tw {

/// Values of a network's parameters and statistics, laid out like its arena.
struct NetworkValues {
  std::span<const float> parameters, statistics;
};

/// Weights (O,I,H,W) and bias of one convolution.
struct ConvWeights {
  ExportedTensor weight;
  std::vector<float> bias;  ///< empty if there is none
};

/// The weights of a convolution, without the batch norm behind it.
ConvWeights conv_weights(const NetworkGraph::Conv2d& conv, const NetworkValues& values);

/// The weights with which the convolution alone computes what it and `norm` compute:
/// w * s and (b - mean) * s + beta, where s = gamma / sqrt(variance + epsilon).
ConvWeights folded(ConvWeights conv, const NetworkGraph::BatchNorm& norm,
                   const NetworkValues& values);

}  // namespace tw
