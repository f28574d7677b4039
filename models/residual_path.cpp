#include "models/residual_path.h"

#include "layers/conv2d.h"

namespace tw {

using namespace layers;

namespace {

std::unique_ptr<BatchNorm> join(ParameterArena& arena, const std::string& name,
                                const ResidualShape& shape) {
  return std::make_unique<BatchNorm>(
      arena, BatchNorm::Options{.name = name,
                                .channels = shape.out,
                                .relu = true,
                                .scale = shape.zero_init ? Init::zeros : Init::ones});
}

}  // namespace

ResidualPath basic_path(ParameterArena& arena, const std::string& name,
                        const ResidualShape& shape) {
  auto main = std::make_unique<Sequential>();
  main->add<Conv2d>(
      arena, {.name = name + ".conv1", .in = shape.in, .out = shape.out, .stride = shape.stride});
  main->add<BatchNorm>(arena, {.name = name + ".bn1", .channels = shape.out, .relu = true});
  main->add<Conv2d>(arena, {.name = name + ".conv2", .in = shape.out, .out = shape.out});
  return {std::move(main), join(arena, name + ".bn2", shape)};
}

ResidualPath bottleneck_path(ParameterArena& arena, const std::string& name,
                             const ResidualShape& shape) {
  const int64_t middle = shape.middle;
  auto main = std::make_unique<Sequential>();
  main->add<Conv2d>(
      arena, {.name = name + ".conv1", .in = shape.in, .out = middle, .kernel = 1, .padding = 0});
  main->add<BatchNorm>(arena, {.name = name + ".bn1", .channels = middle, .relu = true});
  main->add<Conv2d>(arena,
                    {.name = name + ".conv2", .in = middle, .out = middle, .stride = shape.stride});
  main->add<BatchNorm>(arena, {.name = name + ".bn2", .channels = middle, .relu = true});
  main->add<Conv2d>(
      arena, {.name = name + ".conv3", .in = middle, .out = shape.out, .kernel = 1, .padding = 0});
  return {std::move(main), join(arena, name + ".bn3", shape)};
}

}  // namespace tw
