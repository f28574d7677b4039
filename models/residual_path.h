// The main paths of residual blocks, shared by the ResNet families. (He et al., CVPR 2016)
#pragma once

#include "layers/recompute.h"
#include "layers/residual.h"
#include "layers/sequential.h"

namespace tw {

/// The layers of a block except its shortcut, and the batch norm that adds the shortcut.
struct ResidualPath {
  std::unique_ptr<layers::Sequential> main;
  std::unique_ptr<layers::BatchNorm> join;

  /// relu(bn(main) + shortcut); a null shortcut is the identity.
  LayerPtr block(LayerPtr shortcut) {
    return std::make_unique<layers::Recompute>(
        std::make_unique<layers::Residual>(std::move(main), std::move(join), std::move(shortcut)));
  }
};

struct ResidualShape {
  int64_t in, middle, out;  ///< channels
  int64_t stride = 1;
  /// The last batch norm starts with gamma = 0, so that a block starts as its shortcut.
  /// (Goyal et al. 2017)
  bool zero_init = false;
};

/// conv3x3 with the stride - bn - relu - conv3x3 - bn; `middle` equals `out`. `name` begins the
/// names of its tensors: `layer1.0` for `layer1.0.conv1.weight`.
ResidualPath basic_path(ParameterArena& arena, const std::string& name, const ResidualShape& shape);

/// conv1x1 - bn - relu - conv3x3 with the stride - bn - relu - conv1x1 - bn.
ResidualPath bottleneck_path(ParameterArena& arena, const std::string& name,
                             const ResidualShape& shape);

}  // namespace tw
