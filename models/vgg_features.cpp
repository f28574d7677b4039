#include "models/vgg_features.h"

#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/pool.h"
#include "layers/relu.h"

namespace tw {

using namespace layers;

namespace {
constexpr int64_t kStageChannels[] = {64, 128, 256, 512, 512};
}  // namespace

std::unique_ptr<Sequential> vgg_features(ParameterArena& arena, int64_t channels,
                                         std::string_view convolutions, bool batch_norm) {
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

}  // namespace tw
