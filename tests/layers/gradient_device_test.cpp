// Backward of every layer kind, and of small networks, against finite differences of forward.
#include "layers/activation.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/pooling.h"
#include "layers/residual.h"
#include "layers/sequential.h"
#include "tests/support/gradient_check.h"

namespace tw {
namespace {

using namespace layers;
using test::check_gradients;

/// For layers with parameters.
template <class Kind>
auto one(const typename Kind::Options& options) {
  return [options](ParameterArena& arena) -> LayerPtr {
    return std::make_unique<Kind>(arena, options);
  };
}
/// For layers without.
template <class Kind>
auto plain(const typename Kind::Options& options = {}) {
  return [options](ParameterArena&) -> LayerPtr { return std::make_unique<Kind>(options); };
}

LayerPtr block(ParameterArena& arena, int64_t in, int64_t out, int64_t stride) {
  auto main = std::make_unique<Sequential>();
  main->add<Conv2d>(arena, {.name = "conv1", .in = in, .out = out, .stride = stride});
  main->add<BatchNorm>(arena, {.name = "bn1", .channels = out, .relu = true});
  main->add<Conv2d>(arena, {.name = "conv2", .in = out, .out = out});
  auto join = std::make_unique<BatchNorm>(
      arena, BatchNorm::Options{.name = "bn2", .channels = out, .relu = true});
  LayerPtr shortcut;
  if (stride != 1)
    shortcut = std::make_unique<SubsamplePad>(SubsamplePad::Options{.out = out, .stride = stride});
  return std::make_unique<Residual>(std::move(main), std::move(join), std::move(shortcut));
}

TEST(GradientsMatchDifferences, Conv2d) {
  check_gradients(one<Conv2d>({.name = "c", .in = 3, .out = 5, .bias = true}), {2, 6, 5, 3});
  check_gradients(one<Conv2d>({.name = "c", .in = 16, .out = 16}), {2, 4, 4, 16});
}
TEST(GradientsMatchDifferences, Conv2dWithStrideAndOtherKernels) {
  check_gradients(one<Conv2d>({.name = "c", .in = 4, .out = 8, .stride = 2}), {2, 7, 6, 4});
  check_gradients(
      one<Conv2d>({.name = "c", .in = 3, .out = 4, .kernel = 5, .padding = 0, .bias = true}),
      {2, 8, 8, 3});
  check_gradients(one<Conv2d>({.name = "c", .in = 8, .out = 4, .kernel = 1, .padding = 0}),
                  {2, 4, 4, 8});
}
TEST(GradientsMatchDifferences, BatchNorm) {
  check_gradients(one<BatchNorm>({.name = "b", .channels = 5}), {3, 4, 4, 5});
}
TEST(GradientsMatchDifferences, BatchNormWithRelu) {
  check_gradients(one<BatchNorm>({.name = "b", .channels = 8, .relu = true}), {3, 4, 4, 8});
}
TEST(GradientsMatchDifferences, Linear) {
  check_gradients(one<Linear>({.name = "l", .in = {7}, .out = 4, .logits = true}), {5, 7});
}
TEST(GradientsMatchDifferences, LinearAfterAnImage) {
  check_gradients(one<Linear>({.name = "l", .in = {3, 2, 4}, .out = 6}), {5, 3, 2, 4});
}
TEST(GradientsMatchDifferences, MaximumPool) { check_gradients(plain<Pool>(), {2, 6, 6, 4}); }
TEST(GradientsMatchDifferences, MaximumPoolWithOverlap) {
  check_gradients(plain<Pool>({.kernel = 3, .stride = 2, .padding = 1}), {2, 7, 6, 4});
}
TEST(GradientsMatchDifferences, AveragePool) {
  check_gradients(plain<Pool>({.kind = ops::PoolKind::average}), {2, 6, 6, 4});
}
TEST(GradientsMatchDifferences, GlobalAverage) {
  check_gradients(plain<GlobalAverage>(), {2, 5, 4, 6});
}
TEST(GradientsMatchDifferences, Relu) { check_gradients(plain<Relu>(), {4, 3, 3, 5}); }
TEST(GradientsMatchDifferences, Dropout) {
  check_gradients(plain<Dropout>({.rate = 0.4f}), {4, 3, 3, 5});
}
TEST(GradientsMatchDifferences, SubsamplePad) {
  check_gradients(plain<SubsamplePad>({.out = 9, .stride = 2}), {2, 5, 6, 4});
}
TEST(GradientsMatchDifferences, ResidualWithIdentityShortcut) {
  check_gradients([](ParameterArena& a) { return block(a, 4, 4, 1); }, {3, 4, 4, 4});
}
TEST(GradientsMatchDifferences, ResidualWithPaddedShortcut) {
  check_gradients([](ParameterArena& a) { return block(a, 4, 8, 2); }, {3, 6, 6, 4});
}

TEST(GradientsMatchDifferences, ResidualWithLearntShortcut) {
  check_gradients(
      [](ParameterArena& arena) {
        auto main = std::make_unique<Conv2d>(
            arena, Conv2d::Options{.name = "conv", .in = 4, .out = 6, .stride = 2});
        auto join = std::make_unique<BatchNorm>(
            arena, BatchNorm::Options{.name = "bn", .channels = 6, .relu = true});
        auto shortcut = std::make_unique<Sequential>();
        shortcut->add<Conv2d>(
            arena,
            {.name = "downsample.0", .in = 4, .out = 6, .kernel = 1, .stride = 2, .padding = 0});
        shortcut->add<BatchNorm>(arena, {.name = "downsample.1", .channels = 6});
        return std::make_unique<Residual>(std::move(main), std::move(join), std::move(shortcut));
      },
      {3, 6, 6, 4});
}

/// A branch that starts with a residual block returns a pair of gradients to the outer block.
TEST(GradientsMatchDifferences, ResidualInsideAResidual) {
  check_gradients(
      [](ParameterArena& arena) {
        auto main = std::make_unique<Sequential>();
        main->add(block(arena, 4, 4, 1));
        main->add<Conv2d>(arena, {.name = "outer", .in = 4, .out = 4});
        auto join = std::make_unique<BatchNorm>(
            arena, BatchNorm::Options{.name = "join", .channels = 4, .relu = true});
        return std::make_unique<Residual>(std::move(main), std::move(join), nullptr);
      },
      {3, 4, 4, 4});
}

/// The planner, which combines layers, is the same on all devices.
constexpr const char* kSlow = "the emulator takes 20 s; each layer is tested alone";

TEST(GradientsMatchDifferences, SmallResidualNetwork) {
  if (test::emulated()) GTEST_SKIP() << kSlow;
  check_gradients(
      [](ParameterArena& arena) {
        auto net = std::make_unique<Sequential>();
        net->add<Conv2d>(arena, {.name = "stem", .in = 3, .out = 4});
        net->add<BatchNorm>(arena, {.name = "bn", .channels = 4, .relu = true});
        net->add(block(arena, 4, 4, 1));
        net->add<GlobalAverage>();
        net->add<Linear>(arena, {.name = "linear", .in = {4}, .out = 3, .logits = true});
        return net;
      },
      {4, 6, 6, 3});
}

TEST(GradientsMatchDifferences, SmallNetworkWithoutBatchNorm) {
  if (test::emulated()) GTEST_SKIP() << kSlow;
  check_gradients(
      [](ParameterArena& arena) {
        auto net = std::make_unique<Sequential>();
        net->add<Conv2d>(arena, {.name = "conv", .in = 3, .out = 4, .bias = true});
        net->add<Relu>();
        net->add<Pool>();
        net->add<Dropout>({.rate = 0.25f});
        net->add<Linear>(arena, {.name = "fc1", .in = {3, 3, 4}, .out = 8});
        net->add<Relu>();
        net->add<Linear>(arena, {.name = "fc2", .in = {8}, .out = 3, .logits = true});
        return net;
      },
      {4, 6, 6, 3});
}

}  // namespace
}  // namespace tw
