// VGG: Simonyan and Zisserman, ICLR 2015. For each depth N:
//   vggN_cifar         for small images: batch norm, global average pooling and one linear layer
//   vggN_imagenet      at 224, three linear layers and dropout; torchvision's vggN
//   vggN_bn_imagenet   the same with batch norm; torchvision's vggN_bn
//   vggN, vggN_bn      those for ImageNet at 224, else that for small images
// Names follow torchvision; the linear layer of vggN_cifar is `classifier`.
#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/pooling.h"
#include "layers/sequential.h"
#include "models/model.h"

namespace tw {
namespace {

using namespace layers;

/// Configurations A, B, D and E of the paper: the convolutions of each stage, as digits.
constexpr std::string_view kVgg11 = "11222", kVgg13 = "22222", kVgg16 = "22333", kVgg19 = "22444";

/// Five stages of 3x3 convolutions, each followed by a 2x2 pooling: 512 channels at 1/32 of the
/// size. Names: `features.N`, where N counts convolution, batch norm, ReLU and pooling separately.
std::unique_ptr<Sequential> vgg_features(ParameterArena& arena, int64_t channels,
                                         std::string_view convolutions, bool batch_norm) {
  constexpr int64_t kStageChannels[] = {64, 128, 256, 512, 512};
  auto net = std::make_unique<Sequential>();
  int64_t in = channels;
  int module = 0;
  const auto name = [&] { return fmt::format("features.{}", module++); };
  for (size_t stage = 0; stage < convolutions.size(); ++stage) {
    const int64_t out = kStageChannels[stage];
    for (int i = 0; i < convolutions[stage] - '0'; ++i) {
      net->add<Conv2d>(arena, {.name = name(), .in = in, .out = out, .bias = true});
      if (batch_norm)
        net->add<BatchNorm>(arena, {.name = name(), .channels = out, .relu = true});
      else
        net->add<Relu>();
      ++module;  // the ReLU
      in = out;
    }
    net->add<Pool>();
    ++module;
  }
  return net;
}

/// Begins with torchvision's deviation. With that of He et al. vgg16_cifar stays at chance.
Linear::Options linear(const char* name, Shape in, int64_t out, bool logits = false) {
  return {.name = name, .in = in, .out = out, .logits = logits, .deviation = 0.01f};
}

bool add_small_vgg(const char* name, const char* help, std::string_view convolutions) {
  const auto make = [=](ParameterArena& arena, const ModelSpec& spec) {
    check(spec.image[0] >= 32 && spec.image[1] >= 32,
          "[vgg] images are {}; five halvings need at least (32, 32, C)", spec.image);
    auto net = vgg_features(arena, spec.image[2], convolutions, true);
    net->add<GlobalAverage>();
    net->add<Linear>(arena, linear("classifier", {512}, spec.classes, true));
    return net;
  };
  return models().add({name, help, {make}});
}

bool is_large(const Shape& image) { return image[0] / 32 == 7 && image[1] / 32 == 7; }

bool add_large_vgg(const char* name, const char* help, std::string_view convolutions,
                   bool batch_norm) {
  const auto make = [=](ParameterArena& arena, const ModelSpec& spec) {
    // torchvision pools any size to 7 x 7, which is the identity at 224, the only size here
    check(is_large(spec.image),
          "[vgg] images are {}; expected (224, 224, C); vgg11 to vgg19 take any from (32, 32, C)",
          spec.image);
    auto net = vgg_features(arena, spec.image[2], convolutions, batch_norm);
    net->add<Linear>(arena, linear("classifier.0", {7, 7, 512}, 4096));
    net->add<Relu>();
    net->add<Dropout>({.rate = 0.5f, .stream = 0});
    net->add<Linear>(arena, linear("classifier.3", {4096}, 4096));
    net->add<Relu>();
    net->add<Dropout>({.rate = 0.5f, .stream = 1});
    net->add<Linear>(arena, linear("classifier.6", {4096}, spec.classes, true));
    return net;
  };
  return models().add({name, help, {make}});
}

/// A name for both: `small`, and at 224 the network of this name.
bool add_vgg(const std::string& name, const std::string& small) {
  const auto network = [name, small](const Shape& image) {
    return is_large(image) ? name + "_imagenet" : small;
  };
  const auto factory = [network](ParameterArena& arena, const ModelSpec& spec) {
    return models().find(network(spec.image)).value.make(arena, spec);
  };
  return models().add({name,
                       fmt::format("{}_imagenet for images of 224 x 224, else {}", name, small),
                       {.make = factory, .network = network}});
}

const bool vgg_registered =
    add_small_vgg("vgg11_cifar", "VGG-11 with batch norm for small images, 9.2 M parameters",
                  kVgg11) &&
    add_small_vgg("vgg13_cifar", "VGG-13 with batch norm for small images, 9.4 M parameters",
                  kVgg13) &&
    add_small_vgg("vgg16_cifar", "VGG-16 with batch norm for small images, 14.7 M parameters",
                  kVgg16) &&
    add_small_vgg("vgg19_cifar", "VGG-19 with batch norm for small images, 20.0 M parameters",
                  kVgg19) &&
    add_large_vgg("vgg11_imagenet", "VGG-11 at 224, 132.9 M parameters", kVgg11, false) &&
    add_large_vgg("vgg13_imagenet", "VGG-13 at 224, 133.0 M parameters", kVgg13, false) &&
    add_large_vgg("vgg16_imagenet", "VGG-16 at 224, 138.4 M parameters", kVgg16, false) &&
    add_large_vgg("vgg19_imagenet", "VGG-19 at 224, 143.7 M parameters", kVgg19, false) &&
    add_large_vgg("vgg11_bn_imagenet", "VGG-11 with batch norm at 224, 132.9 M parameters", kVgg11,
                  true) &&
    add_large_vgg("vgg13_bn_imagenet", "VGG-13 with batch norm at 224, 133.1 M parameters", kVgg13,
                  true) &&
    add_large_vgg("vgg16_bn_imagenet", "VGG-16 with batch norm at 224, 138.4 M parameters", kVgg16,
                  true) &&
    add_large_vgg("vgg19_bn_imagenet", "VGG-19 with batch norm at 224, 143.7 M parameters", kVgg19,
                  true) &&
    add_vgg("vgg11", "vgg11_cifar") && add_vgg("vgg13", "vgg13_cifar") &&
    add_vgg("vgg16", "vgg16_cifar") && add_vgg("vgg19", "vgg19_cifar") &&
    add_vgg("vgg11_bn", "vgg11_cifar") && add_vgg("vgg13_bn", "vgg13_cifar") &&
    add_vgg("vgg16_bn", "vgg16_cifar") && add_vgg("vgg19_bn", "vgg19_cifar");

}  // namespace
}  // namespace tw
