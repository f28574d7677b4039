// ResNets for ImageNet: He et al., CVPR 2016. A block that halves the image does so in its 3x3
// convolution (v1.5) and has a learnt shortcut. Names follow torchvision.
#include <array>

#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/pooling.h"
#include "models/model.h"
#include "models/residual_path.h"

namespace tw {
namespace {

using namespace layers;

/// Number of blocks in each of the four stages, and their kind.
struct Depth {
  std::array<int, 4> blocks;
  bool bottleneck;
};

LayerPtr block(ParameterArena& arena, const std::string& name, bool bottleneck,
               const ResidualShape& shape) {
  ResidualPath path =
      bottleneck ? bottleneck_path(arena, name, shape) : basic_path(arena, name, shape);
  if (shape.stride == 1 && shape.in == shape.out) return path.block(nullptr);
  auto shortcut = std::make_unique<Sequential>();
  shortcut->add<Conv2d>(arena, {.name = name + ".downsample.0",
                                .in = shape.in,
                                .out = shape.out,
                                .kernel = 1,
                                .stride = shape.stride,
                                .padding = 0});
  shortcut->add<BatchNorm>(arena, {.name = name + ".downsample.1", .channels = shape.out});
  return path.block(std::move(shortcut));
}

LayerPtr resnet(ParameterArena& arena, const ModelSpec& spec, const Depth& depth) {
  auto net = std::make_unique<Sequential>();
  net->add<Conv2d>(
      arena,
      {.name = "conv1", .in = spec.image[2], .out = 64, .kernel = 7, .stride = 2, .padding = 3});
  net->add<BatchNorm>(arena, {.name = "bn1", .channels = 64, .relu = true});
  net->add<Pool>({.kernel = 3, .stride = 2, .padding = 1});
  int64_t in = 64;
  for (int stage = 1; stage <= 4; ++stage) {
    const int64_t middle = 32 << stage, out = depth.bottleneck ? 4 * middle : middle;
    for (int i = 0; i < depth.blocks[static_cast<size_t>(stage - 1)]; ++i) {
      net->add(block(arena, fmt::format("layer{}.{}", stage, i), depth.bottleneck,
                     {.in = in,
                      .middle = middle,
                      .out = out,
                      .stride = stage > 1 && i == 0 ? 2 : 1,
                      .zero_init = spec.zero_init}));
      in = out;
    }
  }
  net->add<GlobalAverage>();
  net->add<Linear>(arena, {.name = "fc", .in = {in}, .out = spec.classes, .logits = true});
  return net;
}

bool add_large(const char* name, const char* help, const Depth& depth) {
  const auto make = [=](ParameterArena& arena, const ModelSpec& spec) {
    return resnet(arena, spec, depth);
  };
  return models().add({name, help, {.make = make, .sides = ImageSides{.least = 96}}});
}

const bool resnet_imagenet_registered =
    add_large(kResnet18, "ResNet-18 for ImageNet, 11.7 M parameters", {{2, 2, 2, 2}, false}) &&
    add_large("resnet34", "ResNet-34 for ImageNet, 21.8 M parameters", {{3, 4, 6, 3}, false}) &&
    add_large(kResnet50, "ResNet-50 (v1.5) for ImageNet, 25.6 M parameters",
              {{3, 4, 6, 3}, true}) &&
    add_large("resnet101", "ResNet-101 (v1.5) for ImageNet, 44.5 M parameters",
              {{3, 4, 23, 3}, true}) &&
    add_large("resnet152", "ResNet-152 (v1.5) for ImageNet, 60.2 M parameters",
              {{3, 8, 36, 3}, true});

}  // namespace

const char* const kResnet18 = "resnet18";
const char* const kResnet50 = "resnet50";

}  // namespace tw
