#include "apps/export/folding.h"

#include <cmath>

namespace tw {

ConvWeights conv_weights(const NetworkGraph::Conv2d& conv, const NetworkValues& values) {
  ConvWeights weights{export_parameter(*conv.weight, conv.weight->in(values.parameters)), {}};
  if (conv.bias) {
    const std::span<const float> bias = conv.bias->in(values.parameters);
    weights.bias.assign(bias.begin(), bias.end());
  }
  return weights;
}

ConvWeights folded(ConvWeights conv, const NetworkGraph::BatchNorm& norm,
                   const NetworkValues& values) {
  const auto channels = static_cast<size_t>(conv.weight.shape[0]);
  const size_t row = conv.weight.values.size() / channels;
  conv.bias.resize(channels);
  for (size_t c = 0; c < channels; ++c) {
    const auto parameter = [&](const Parameter* p) { return double{p->in(values.parameters)[c]}; };
    const auto statistic = [&](const Parameter* p) { return double{p->in(values.statistics)[c]}; };
    const double scale =
        parameter(norm.gamma) / std::sqrt(statistic(norm.variance) + double{norm.epsilon});
    for (float& w : std::span(conv.weight.values).subspan(c * row, row))
      w = static_cast<float>(double{w} * scale);
    conv.bias[c] = static_cast<float>((double{conv.bias[c]} - statistic(norm.mean)) * scale +
                                      parameter(norm.beta));
  }
  return conv;
}

}  // namespace tw
