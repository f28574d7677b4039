// The convolutional part of VGG, shared by its families. (Simonyan and Zisserman, ICLR 2015)
#pragma once

#include <string_view>

#include "layers/sequential.h"

namespace tw {

/// Five stages of 3x3 convolutions, each followed by a 2x2 pooling: 512 channels at 1/32 of the
/// size. `convolutions`: number of convolutions of each stage, as digits. Names follow torchvision:
/// `features.N`, where N counts convolution, batch norm, ReLU and pooling separately.
std::unique_ptr<layers::Sequential> vgg_features(ParameterArena& arena, int64_t channels,
                                                 std::string_view convolutions, bool batch_norm);

/// Configurations A, B, D and E of the paper.
inline constexpr std::string_view kVgg11 = "11222", kVgg13 = "22222", kVgg16 = "22333",
                                  kVgg19 = "22444";

}  // namespace tw
