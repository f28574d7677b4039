// LeNet-5 with ReLU and maximum pooling, after LeCun et al., Proc. IEEE 1998.
#include "layers/activation.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/pooling.h"
#include "layers/sequential.h"
#include "models/model.h"

namespace tw {
namespace {

using namespace layers;

/// Output pixels of a 5x5 convolution without padding and a 2x2 pooling for n input pixels.
int64_t stage(int64_t n) { return (n - 4) / 2; }

LayerPtr lenet(ParameterArena& arena, const ModelSpec& spec) {
  check(spec.image[0] >= 16 && spec.image[1] >= 16,
        "[lenet] images are {}; two 5x5 convolutions and halvings need at least (16, 16, C)",
        spec.image);
  const Shape flattened{stage(stage(spec.image[0])), stage(stage(spec.image[1])), 16};
  auto net = std::make_unique<Sequential>();
  net->add<Conv2d>(
      arena,
      {.name = "conv1", .in = spec.image[2], .out = 6, .kernel = 5, .padding = 0, .bias = true});
  net->add<Relu>();
  net->add<Pool>();
  net->add<Conv2d>(arena,
                   {.name = "conv2", .in = 6, .out = 16, .kernel = 5, .padding = 0, .bias = true});
  net->add<Relu>();
  net->add<Pool>();
  net->add<Linear>(arena, {.name = "fc1", .in = flattened, .out = 120});
  net->add<Relu>();
  net->add<Linear>(arena, {.name = "fc2", .in = {120}, .out = 84});
  net->add<Relu>();
  net->add<Linear>(arena, {.name = "fc3", .in = {84}, .out = spec.classes, .logits = true});
  return net;
}

const bool lenet_registered = models().add({"lenet",
                                            "LeNet-5 with ReLU, 0.06 M parameters",
                                            {.make = lenet,
                                             .rate = DefaultRate{0.01, "without batch norm"},
                                             .sides = ImageSides{.most = 64}}});

}  // namespace
}  // namespace tw
