// AlexNet in its one-column form: Krizhevsky, 2014 (arXiv:1404.5997). Names follow torchvision.
#include "layers/activation.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/pooling.h"
#include "layers/sequential.h"
#include "models/model.h"

namespace tw {
namespace {

using namespace layers;

/// Output pixels of the convolutions and pools for n input pixels.
int64_t stages(int64_t n) {
  const auto halved = [](int64_t m) { return (m - 3) / 2 + 1; };
  return halved(halved(halved((n + 2 * 2 - 11) / 4 + 1)));
}

LayerPtr alexnet(ParameterArena& arena, const ModelSpec& spec) {
  // torchvision pools any size to 6 x 6, which is the identity at 224, the only size here
  check(stages(spec.image[0]) == 6 && stages(spec.image[1]) == 6,
        "[alexnet] images are {}; expected (224, 224, C)", spec.image);
  auto net = std::make_unique<Sequential>();
  const auto conv = [&](Conv2d::Options options) {
    options.bias = true;
    net->add<Conv2d>(arena, options);
    net->add<Relu>();
  };
  const auto linear = [&](Linear::Options options) {
    options.deviation = 0.01f;  // with that of He et al. the first loss of ten classes is 15
    net->add<Linear>(arena, options);
  };
  const Pool::Options overlapping{.kernel = 3, .stride = 2};
  const int64_t in = spec.image[2];
  conv({.name = "features.0", .in = in, .out = 64, .kernel = 11, .stride = 4, .padding = 2});
  net->add<Pool>(overlapping);
  conv({.name = "features.3", .in = 64, .out = 192, .kernel = 5, .padding = 2});
  net->add<Pool>(overlapping);
  conv({.name = "features.6", .in = 192, .out = 384});
  conv({.name = "features.8", .in = 384, .out = 256});
  conv({.name = "features.10", .in = 256, .out = 256});
  net->add<Pool>(overlapping);
  net->add<Dropout>({.rate = 0.5f, .stream = 0});
  linear({.name = "classifier.1", .in = {6, 6, 256}, .out = 4096});
  net->add<Relu>();
  net->add<Dropout>({.rate = 0.5f, .stream = 1});
  linear({.name = "classifier.4", .in = {4096}, .out = 4096});
  net->add<Relu>();
  linear({.name = "classifier.6", .in = {4096}, .out = spec.classes, .logits = true});
  return net;
}

const bool alexnet_registered =
    models().add({"alexnet", "AlexNet at 224, 61.1 M parameters", {alexnet}});

}  // namespace
}  // namespace tw
