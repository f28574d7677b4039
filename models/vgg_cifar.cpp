// VGG with batch norm for small images: the convolutions of Simonyan and Zisserman, ICLR 2015,
// global average pooling and one linear layer. Names: `features.N` as in torchvision's vgg*_bn,
// then `classifier`. vgg.cpp has the names without _cifar.
#include "layers/global_average.h"
#include "layers/linear.h"
#include "models/model.h"
#include "models/vgg_features.h"

namespace tw {
namespace {

using namespace layers;

LayerPtr vgg(ParameterArena& arena, const ModelSpec& spec, std::string_view convolutions) {
  check(spec.image[0] >= 32 && spec.image[1] >= 32,
        "[vgg] images are {}; five halvings need at least (32, 32, C)", spec.image);
  auto net = vgg_features(arena, spec.image[2], convolutions, true);
  net->add<GlobalAverage>();
  net->add<Linear>(arena, {.name = "classifier", .in = {512}, .out = spec.classes, .logits = true});
  return net;
}

LayerPtr vgg11(ParameterArena& arena, const ModelSpec& spec) { return vgg(arena, spec, kVgg11); }
LayerPtr vgg13(ParameterArena& arena, const ModelSpec& spec) { return vgg(arena, spec, kVgg13); }
LayerPtr vgg16(ParameterArena& arena, const ModelSpec& spec) { return vgg(arena, spec, kVgg16); }
LayerPtr vgg19(ParameterArena& arena, const ModelSpec& spec) { return vgg(arena, spec, kVgg19); }

const bool vgg_cifar_registered =
    models().add(
        {"vgg11_cifar", "VGG-11 with batch norm for small images, 9.2 M parameters", vgg11}) &&
    models().add(
        {"vgg13_cifar", "VGG-13 with batch norm for small images, 9.4 M parameters", vgg13}) &&
    models().add(
        {"vgg16_cifar", "VGG-16 with batch norm for small images, 14.7 M parameters", vgg16}) &&
    models().add(
        {"vgg19_cifar", "VGG-19 with batch norm for small images, 20.0 M parameters", vgg19});

}  // namespace
}  // namespace tw
