// ResNets for small images: He et al., CVPR 2016. Depth 6n + 2: a 3x3 stem, then
// three stages of n blocks with 16, 32 and 64 channels, each at half the size of the one before;
// shortcuts have no parameters (option A). Names follow akamaster/pytorch_resnet_cifar10.
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/pooling.h"
#include "models/model.h"
#include "models/residual_path.h"

namespace tw {
namespace {

using namespace layers;

LayerPtr block(ParameterArena& arena, const std::string& name, const ResidualShape& shape) {
  ResidualPath path = basic_path(arena, name, shape);
  LayerPtr shortcut;
  if (shape.stride != 1 || shape.in != shape.out)
    shortcut = std::make_unique<SubsamplePad>(
        SubsamplePad::Options{.out = shape.out, .stride = shape.stride});
  return path.block(std::move(shortcut));
}

LayerPtr resnet(ParameterArena& arena, const ModelSpec& spec, int depth) {
  const int blocks = (depth - 2) / 6;
  auto net = std::make_unique<Sequential>();
  net->add<Conv2d>(arena, {.name = "conv1", .in = spec.image[2], .out = 16});
  net->add<BatchNorm>(arena, {.name = "bn1", .channels = 16, .relu = true});
  int64_t in = 16;
  for (int stage = 1; stage <= 3; ++stage) {
    const int64_t out = 8 << stage;
    for (int i = 0; i < blocks; ++i) {
      net->add(block(arena, fmt::format("layer{}.{}", stage, i),
                     {.in = in,
                      .middle = out,
                      .out = out,
                      .stride = stage > 1 && i == 0 ? 2 : 1,
                      .zero_init = spec.zero_init}));
      in = out;
    }
  }
  net->add<GlobalAverage>();
  net->add<Linear>(arena, {.name = "linear", .in = {in}, .out = spec.classes, .logits = true});
  return net;
}

bool add_small(const char* name, const char* help, int depth) {
  const auto make = [=](ParameterArena& arena, const ModelSpec& spec) {
    return resnet(arena, spec, depth);
  };
  return models().add({name, help, {.make = make, .sides = ImageSides{.most = 64}}});
}

const bool resnet_cifar_registered =
    add_small(kResnet20, "ResNet-20 for small images, 0.27 M parameters", 20) &&
    add_small("resnet32", "ResNet-32 for small images, 0.46 M parameters", 32) &&
    add_small("resnet44", "ResNet-44 for small images, 0.66 M parameters", 44) &&
    add_small("resnet56", "ResNet-56 for small images, 0.85 M parameters", 56) &&
    add_small("resnet110", "ResNet-110 for small images, 1.7 M parameters", 110);

}  // namespace

const char* const kResnet20 = "resnet20";

}  // namespace tw
