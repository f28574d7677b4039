// Gradient checker: compares a layer's backward with finite differences of its forward, for the
// input and every parameter.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "engine/core/copy.h"
#include "layers/gradient_sum.h"
#include "tests/support/owned_tensor.h"

namespace tw::test {

/// A planned layer in f32 with random parameters and input.
class LayerUnderTest {
 public:
  using Build = std::function<LayerPtr(ParameterArena&)>;

  /// With `pair`, the gradient of y reaches the layer as the sum of two tensors.
  LayerUnderTest(const Build& build, const Shape& x_shape, uint64_t seed, bool pair = false)
      : layer(build(arena)), planner_(ctx, DType::f32) {
    ctx.set_math({.deterministic = true});
    x = planner_.persistent(x_shape, DType::f32);
    y = layer->plan_forward(planner_, x);
    dy_ = {planner_.make(y->shape), pair ? planner_.make(y->shape) : TensorRef{}};
    planner_.use({y, dy_.main, dy_.extra});
    const Gradient input_gradient = layer->plan_backward(planner_, dy_);
    dx = dx_sum_.plan(planner_, input_gradient);
    planner_.use({dx});
    planner_.commit();
    arena.allocate(ctx, seed);
    randomise(x->as<float>(), 100 * seed, 1.0);
    // away from the initial values, at which some gradients vanish
    uint64_t id = 100 * seed + 1;
    for (const Parameter& p : arena.parameters()) randomise(p.in(arena.values()), ++id, 0.3);
    upstream_ = normal_values(y->numel(), ++id);
    extra_ = normal_values(y->numel(), ++id);
    if (!pair) std::ranges::fill(extra_, 0.0);
    refresh();
  }

  std::vector<double> forward() {
    refresh();
    layer->forward(pass);
    return to_doubles(ctx, y->as<float>());
  }

  /// Forward and backward; afterwards dx and the arena hold the gradients.
  void backward(bool accumulate = false) {
    forward();
    assign(dy_.main, upstream_);
    if (dy_.extra) assign(dy_.extra, extra_);
    pass.accumulate = accumulate;
    layer->backward(pass);
    dx_sum_.run(ctx);
  }

  /// One-sided difference quotients of the sum of y * (upstream + extra) with respect to one value.
  struct Slopes {
    double right, left;
  };
  Slopes slopes(std::span<float> values, size_t at) {
    constexpr float kWidth = 1e-3f;
    const std::span<float> value = values.subspan(at, 1);
    const float here = HostFloats(ctx, value).span()[0];
    const auto middle = forward();
    const auto slope = [&](float there) {
      set(value, there);
      const auto moved = forward();
      set(value, here);
      double sum = 0;
      for (size_t i = 0; i < moved.size(); ++i)
        sum += (moved[i] - middle[i]) * (upstream_[i] + extra_[i]);
      return sum / (double{there} - here);
    };
    return {slope(here + kWidth), slope(here - kWidth)};
  }

  static std::vector<double> to_doubles(Context& ctx, std::span<float> device) {
    const HostFloats host(ctx, device);
    return {host.span().begin(), host.span().end()};
  }

  Context ctx{device()};
  ParameterArena arena;
  LayerPtr layer;
  TensorRef x, y, dx;
  PassArgs pass{.ctx = ctx, .seed = 7, .step = 3};

 private:
  void refresh() {
    ops::Transfers conversions;
    layer->refresh(ctx, conversions);
    ops::transfer(ctx, conversions);
  }
  void randomise(std::span<float> values, uint64_t id, double deviation) {
    const auto drawn = normal_values(std::ssize(values), id);
    HostFloats host(ctx, values);
    for (size_t i = 0; i < values.size(); ++i)
      host.span()[i] += static_cast<float>(deviation * drawn[i]);
    host.write();
  }
  void assign(TensorRef tensor, const std::vector<double>& values) {
    HostFloats host(ctx, tensor->as<float>());
    std::ranges::transform(values, host.span().begin(),
                           [](double v) { return static_cast<float>(v); });
    host.write();
  }
  void set(std::span<float> one, float value) {
    HostFloats host(ctx, one);
    host.span()[0] = value;
    host.write();
  }

  Planner planner_;
  Gradient dy_;
  layers::GradientSum dx_sum_;
  std::vector<double> upstream_, extra_;
};

/// Compares up to kSampled elements of a gradient with central differences. Skips elements whose
/// one-sided slopes differ: there is a kink between them (ReLU, maximum).
inline void check_vector(LayerUnderTest& test, const std::string& what, std::span<float> values,
                         const std::vector<double>& gradient, double tolerance) {
  constexpr size_t kSampled = 40;
  const size_t stride = std::max<size_t>(1, values.size() / kSampled);
  double scale = 1;
  for (const double g : gradient) scale = std::max(scale, std::abs(g));
  size_t checked = 0, kinks = 0;
  for (size_t i = 0; i < values.size(); i += stride, ++checked) {
    const auto [right, left] = test.slopes(values, i);
    if (std::abs(right - left) > tolerance * scale)
      ++kinks;
    else
      EXPECT_NEAR(gradient[i], (right + left) / 2, tolerance * scale) << what << ", element " << i;
  }
  EXPECT_LE(2 * kinks, checked) << what << ": too many kinks";
}

/// Checks dx and every parameter's gradient of a layer at two random points, for an upstream
/// gradient in one tensor and in two, written and accumulated.
inline void check_gradients(const LayerUnderTest::Build& build, const Shape& x_shape,
                            double tolerance = 1e-2) {
  for (const uint64_t seed : {1, 2}) {
    for (const bool pair : {false, true}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << (pair ? ", dy in two tensors" : ""));
      LayerUnderTest test(build, x_shape, seed, pair);
      test.backward();
      const auto read = [&](std::span<float> x) { return LayerUnderTest::to_doubles(test.ctx, x); };
      const std::vector<double> input_gradient = read(test.dx->as<float>());
      const std::vector<double> once = read(test.arena.gradients());

      test.backward(true);
      const std::vector<double> all = read(test.arena.gradients());
      for (size_t i = 0; i < once.size(); ++i)
        ASSERT_NEAR(all[i], 2 * once[i], 1e-4 * (1 + std::abs(once[i])))
            << test.arena.at(i).name << ": accumulated once more, element " << i;

      check_vector(test, "x", test.x->as<float>(), input_gradient, tolerance);
      for (const Parameter& p : test.arena.parameters()) {
        const auto begin = once.begin() + static_cast<std::ptrdiff_t>(p.offset);
        check_vector(test, p.name, p.in(test.arena.values()),
                     {begin, begin + static_cast<std::ptrdiff_t>(p.length())}, tolerance);
      }
    }
  }
}

}  // namespace tw::test
