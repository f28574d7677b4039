// Properties of layers besides their gradients: which layers compute dx, when a gradient is final,
// what dropout masks depend on.
#include <gtest/gtest.h>

#include "engine/io/weights.h"
#include "layers/activation.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "tests/support/gradient_check.h"

namespace tw {
namespace {

using namespace layers;
using test::LayerUnderTest;

LayerPtr chain(ParameterArena& arena, bool input_gradient) {
  auto net = std::make_unique<Sequential>();
  net->add<Relu>();
  net->add<Conv2d>(arena, {.name = "conv", .in = 3, .out = 4, .bias = true});
  net->add<Relu>();
  net->add<Linear>(arena, {.name = "fc", .in = {4, 4, 4}, .out = 2, .logits = true});
  if (!input_gradient) net->skip_input_gradient();
  return net;
}

TEST(Layer, LayersBeforeTheFirstParameterSkipBackward) {
  LayerUnderTest whole([](ParameterArena& a) { return chain(a, true); }, {2, 4, 4, 3}, 1);
  LayerUnderTest cut([](ParameterArena& a) { return chain(a, false); }, {2, 4, 4, 3}, 1);
  EXPECT_TRUE(whole.dx);
  EXPECT_FALSE(cut.dx);
  whole.backward();
  cut.backward();
  const HostFloats a = whole.arena.host_gradients(), b = cut.arena.host_gradients();
  for (size_t i = 0; i < whole.arena.size(); ++i)
    EXPECT_EQ(a.span()[i], b.span()[i]) << whole.arena.at(i).name;
}

TEST(Layer, ANetworkHasTheParametersOfItsLayers) {
  ParameterArena arena;
  Sequential net;
  net.add<Relu>();
  EXPECT_FALSE(net.has_parameters());
  net.add<Linear>(arena, {.name = "fc", .in = {4, 4, 4}, .out = 2});
  EXPECT_TRUE(net.has_parameters());
}

TEST(Layer, GradientsBecomeFinalInReverseOrderOfDeclaration) {
  LayerUnderTest test([](ParameterArena& a) { return chain(a, false); }, {2, 4, 4, 3}, 1);
  std::vector<std::string> names;
  test.pass.on_gradient_ready = [&](const Parameter& p) { names.push_back(p.name); };
  test.backward();
  EXPECT_EQ(names, (std::vector<std::string>{"fc.bias", "fc.weight", "conv.bias", "conv.weight"}));
}

LayerUnderTest::Build dropout(float rate, uint32_t stream = 0) {
  return [=](ParameterArena&) -> LayerPtr {
    return std::make_unique<Dropout>(Dropout::Options{.rate = rate, .stream = stream});
  };
}

TEST(Dropout, MaskDependsOnSeedStepAndStreamAlone) {
  LayerUnderTest test(dropout(0.5f), {4, 8}, 1), other(dropout(0.5f, 1), {4, 8}, 1);
  const auto first = test.forward();
  EXPECT_EQ(first, test.forward());
  EXPECT_NE(first, other.forward());
  ++test.pass.step;
  EXPECT_NE(first, test.forward());
  --test.pass.step;
  ++test.pass.seed;
  EXPECT_NE(first, test.forward());
}

TEST(Dropout, IsTheIdentityInEvaluation) {
  LayerUnderTest test(dropout(0.5f), {4, 8}, 1);
  test.pass.training = false;
  EXPECT_EQ(test.forward(), LayerUnderTest::to_doubles(test.ctx, test.x->as<float>()));
}

/// The exported weights give PyTorch's result with an NCHW flatten.
TEST(Linear, AfterAnImageExportsTorchvisionsColumnOrder) {
  constexpr int64_t n = 2, h = 3, w = 2, c = 4, out = 5;
  LayerUnderTest test(
      [](ParameterArena& a) -> LayerPtr {
        return std::make_unique<Linear>(a,
                                        Linear::Options{.name = "fc", .in = {h, w, c}, .out = out});
      },
      {n, h, w, c}, 1);
  const auto y = test.forward();
  const Parameter &weight = test.arena.parameters()[0], &bias = test.arena.parameters()[1];
  const HostFloats values = test.arena.host_values();
  const auto exported = export_parameter(weight, weight.in(values.span()));
  const auto x = LayerUnderTest::to_doubles(test.ctx, test.x->as<float>());
  const auto b = bias.in(values.span());
  for (int64_t row = 0; row < n; ++row)
    for (int64_t o = 0; o < out; ++o) {
      double sum = b[o];
      for (int64_t column = 0; column < c * h * w; ++column) {
        const int64_t channel = column / (h * w), pixel = column % (h * w);
        sum += double{exported.values[o * c * h * w + column]} *
               x[(row * h * w + pixel) * c + channel];
      }
      EXPECT_NEAR(y[row * out + o], sum, 1e-5);
    }
}

TEST(Layer, ErrorsNameTheWrongInput) {
  Context ctx(test::device());
  ParameterArena arena;
  Planner plan(ctx, DType::f32);
  Conv2d conv(arena, {.name = "stem", .in = 3, .out = 4});
  Linear linear(arena, {.name = "head", .in = {8}, .out = 4});
  const TensorRef x = plan.make({2, 4, 4, 5});
  EXPECT_THROW(conv.plan_forward(plan, x), UserError);
  EXPECT_THROW(linear.plan_forward(plan, x), UserError);
}

}  // namespace
}  // namespace tw
