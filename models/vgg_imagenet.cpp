// VGG for ImageNet: Simonyan and Zisserman, ICLR 2015, without and with batch norm, with three
// linear layers and dropout. Parameter names follow torchvision's vgg* and vgg*_bn. vgg.cpp has the
// names without _imagenet.
#include "layers/dropout.h"
#include "layers/linear.h"
#include "layers/relu.h"
#include "models/model.h"
#include "models/vgg_features.h"

namespace tw {
namespace {

using namespace layers;

LayerPtr vgg(ParameterArena& arena, const ModelSpec& spec, std::string_view convolutions,
             bool batch_norm) {
  // torchvision pools any size to 7 x 7, which is the identity at 224, the only size here
  check(spec.image[0] / 32 == 7 && spec.image[1] / 32 == 7,
        "[vgg] images are {}; expected (224, 224, C); vgg11 to vgg19 take any from (32, 32, C)",
        spec.image);
  auto net = vgg_features(arena, spec.image[2], convolutions, batch_norm);
  net->add<Linear>(arena, {.name = "classifier.0", .in = {7, 7, 512}, .out = 4096});
  net->add<Relu>();
  net->add<Dropout>({.rate = 0.5f, .stream = 0});
  net->add<Linear>(arena, {.name = "classifier.3", .in = {4096}, .out = 4096});
  net->add<Relu>();
  net->add<Dropout>({.rate = 0.5f, .stream = 1});
  net->add<Linear>(arena,
                   {.name = "classifier.6", .in = {4096}, .out = spec.classes, .logits = true});
  return net;
}

template <const std::string_view& convolutions, bool batch_norm>
LayerPtr make(ParameterArena& arena, const ModelSpec& spec) {
  return vgg(arena, spec, convolutions, batch_norm);
}

bool add(const char* name, const char* help, ModelFactory factory) {
  return models().add({name, help, std::move(factory)});
}

const bool vgg_imagenet_registered =
    add("vgg11_imagenet", "VGG-11 at 224, 132.9 M parameters", make<kVgg11, false>) &&
    add("vgg13_imagenet", "VGG-13 at 224, 133.0 M parameters", make<kVgg13, false>) &&
    add("vgg16_imagenet", "VGG-16 at 224, 138.4 M parameters", make<kVgg16, false>) &&
    add("vgg19_imagenet", "VGG-19 at 224, 143.7 M parameters", make<kVgg19, false>) &&
    add("vgg11_bn_imagenet", "VGG-11 with batch norm at 224, 132.9 M parameters",
        make<kVgg11, true>) &&
    add("vgg13_bn_imagenet", "VGG-13 with batch norm at 224, 133.1 M parameters",
        make<kVgg13, true>) &&
    add("vgg16_bn_imagenet", "VGG-16 with batch norm at 224, 138.4 M parameters",
        make<kVgg16, true>) &&
    add("vgg19_bn_imagenet", "VGG-19 with batch norm at 224, 143.7 M parameters",
        make<kVgg19, true>);

}  // namespace
}  // namespace tw
