// VGG with batch norm for small images: Simonyan and Zisserman, ICLR 2015, table 1, with one linear
// layer behind the last pooling. Names follow torchvision's vgg*_bn: `features.N`, where N counts
// convolution, batch norm, ReLU and pooling as modules of their own; then `classifier`.
#include <string_view>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/pool.h"
#include "layers/sequential.h"
#include "models/model.h"

namespace tw {
namespace {

using namespace layers;

constexpr int64_t kStageChannels[] = {64, 128, 256, 512, 512};

/// `convolutions`: how many 3x3 convolutions each of the five stages has, as digits.
LayerPtr vgg(ParameterArena& arena, const ModelSpec& spec, std::string_view convolutions) {
  check(spec.image[0] >= 32 && spec.image[1] >= 32,
        "[vgg] images are {}; five halvings need at least (32, 32, C)", spec.image);
  auto net = std::make_unique<Sequential>();
  int64_t in = spec.image[2];
  int module = 0;
  const auto name = [&] { return fmt::format("features.{}", module++); };
  for (size_t stage = 0; stage < convolutions.size(); ++stage) {
    const int64_t out = kStageChannels[stage];
    for (int i = 0; i < convolutions[stage] - '0'; ++i) {
      net->add<Conv2d>(arena, {.name = name(), .in = in, .out = out, .bias = true});
      net->add<BatchNorm>(arena, {.name = name(), .channels = out, .relu = true});
      ++module;  // the ReLU
      in = out;
    }
    net->add<Pool>();
    ++module;
  }
  net->add<GlobalAverage>();
  net->add<Linear>(arena, {.name = "classifier", .in = {in}, .out = spec.classes, .logits = true});
  return net;
}

LayerPtr vgg11(ParameterArena& arena, const ModelSpec& spec) { return vgg(arena, spec, "11222"); }
LayerPtr vgg13(ParameterArena& arena, const ModelSpec& spec) { return vgg(arena, spec, "22222"); }
LayerPtr vgg16(ParameterArena& arena, const ModelSpec& spec) { return vgg(arena, spec, "22333"); }
LayerPtr vgg19(ParameterArena& arena, const ModelSpec& spec) { return vgg(arena, spec, "22444"); }

const bool registered =
    models().add({"vgg11", "VGG-11 with batch norm for small images, 9.2 M parameters", vgg11}) &&
    models().add({"vgg13", "VGG-13 with batch norm for small images, 9.4 M parameters", vgg13}) &&
    models().add({"vgg16", "VGG-16 with batch norm for small images, 14.7 M parameters", vgg16}) &&
    models().add({"vgg19", "VGG-19 with batch norm for small images, 20.0 M parameters", vgg19});

}  // namespace
}  // namespace tw
