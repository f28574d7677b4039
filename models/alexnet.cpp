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
  const auto conv = [&](const char* name, int64_t in, int64_t out, int64_t kernel, int64_t stride,
                        int64_t padding) {
    net->add<Conv2d>(arena, {.name = name,
                             .in = in,
                             .out = out,
                             .kernel = kernel,
                             .stride = stride,
                             .padding = padding,
                             .bias = true});
    net->add<Relu>();
  };
  const Pool::Options overlapping{.kernel = 3, .stride = 2};
  conv("features.0", spec.image[2], 64, 11, 4, 2);
  net->add<Pool>(overlapping);
  conv("features.3", 64, 192, 5, 1, 2);
  net->add<Pool>(overlapping);
  conv("features.6", 192, 384, 3, 1, 1);
  conv("features.8", 384, 256, 3, 1, 1);
  conv("features.10", 256, 256, 3, 1, 1);
  net->add<Pool>(overlapping);
  net->add<Dropout>({.rate = 0.5f, .stream = 0});
  net->add<Linear>(arena, {.name = "classifier.1", .in = {6, 6, 256}, .out = 4096});
  net->add<Relu>();
  net->add<Dropout>({.rate = 0.5f, .stream = 1});
  net->add<Linear>(arena, {.name = "classifier.4", .in = {4096}, .out = 4096});
  net->add<Relu>();
  net->add<Linear>(arena,
                   {.name = "classifier.6", .in = {4096}, .out = spec.classes, .logits = true});
  return net;
}

const bool alexnet_registered =
    models().add({"alexnet", "AlexNet at 224, 61.1 M parameters", {alexnet}});

}  // namespace
}  // namespace tw
