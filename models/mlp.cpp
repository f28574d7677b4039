// A multilayer perceptron: pixels - 256 - 128 - classes.
#include "layers/activation.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "models/model.h"

namespace tw {
namespace {

using namespace layers;

LayerPtr mlp(ParameterArena& arena, const ModelSpec& spec) {
  auto net = std::make_unique<Sequential>();
  net->add<Linear>(arena, {.name = "fc1", .in = spec.image, .out = 256});
  net->add<Relu>();
  net->add<Linear>(arena, {.name = "fc2", .in = {256}, .out = 128});
  net->add<Relu>();
  net->add<Linear>(arena, {.name = "fc3", .in = {128}, .out = spec.classes, .logits = true});
  return net;
}

const bool mlp_registered = models().add(
    {"mlp",
     "multilayer perceptron with 256 and 128 hidden units, 0.82 M parameters at 32 x 32",
     {.make = mlp, .rate = DefaultRate{0.01, "without batch norm"}}});

}  // namespace
}  // namespace tw
