// A planned model with a batch, for tests of training steps.
#pragma once

#include <cmath>

#include "engine/core/rng.h"
#include "engine/ops/sgd.h"
#include "engine/ops/vector.h"
#include "models/model.h"
#include "tests/support/decay_bounds.h"
#include "tests/support/owned_tensor.h"

namespace tw::test {

/// Fills the input with rows `first`, `first` + 1, ... of the random data set `id`.
inline void fill_batch(const Model& model, uint64_t id, int64_t first = 0) {
  std::vector<uint8_t> images(model.images().bytes());
  std::vector<int32_t> labels(static_cast<size_t>(model.labels().numel()));
  const auto pixels = std::ssize(images) / std::ssize(labels);
  const Philox philox(id, Purpose::test);
  for (int64_t row = 0; row < std::ssize(labels); ++row) {
    const auto sample = static_cast<uint64_t>(first + row);
    auto* const bytes = images.data() + row * pixels;
    for (int64_t i = 0; i < pixels; ++i)
      bytes[i] = static_cast<uint8_t>(philox(sample, static_cast<uint32_t>(i))[0]);
    labels[row] = static_cast<int32_t>(
        below(philox(sample, UINT32_MAX)[0], static_cast<uint32_t>(model.spec().classes)));
  }
  copy_now({images.data(), model.images().shape, DType::u8, Device::cpu}, model.images());
  copy_now({labels.data(), model.labels().shape, DType::i32, Device::cpu}, model.labels());
}

struct PlannedModel {
  PlannedModel(const std::string& name, int64_t batch, DType activations = DType::f32,
               const ModelSpec& spec = {}, int threads = 1)
      : ctx(device(), threads), model(name, spec) {
    ctx.set_math({.deterministic = true});
    const auto channels = static_cast<size_t>(spec.image[2]);
    memory = model.plan(ctx, {.batch = batch,
                              .activations = activations,
                              .mean = std::vector<float>(channels, 0.5f),
                              .deviation = std::vector<float>(channels, 0.25f)});
    model.allocate(ctx, 1);
    fill_batch(model, 1);
  }

  /// Mean loss of a step; the arena then holds the gradients.
  double step(float grad_scale = 1.0f) {
    const auto sums = model.forward(pass, grad_scale);
    model.backward(pass);
    return sums.loss / static_cast<double>(sums.count);
  }

  void update(float lr) {
    const auto values = model.arena().values();
    ops::sgd_update(ctx,
                    {.lr = lr, .momentum = 0, .weight_decay = 0, .nesterov = false, .scale = 1},
                    kDecayAll, model.arena().gradients(), {}, values);
    model.refresh(ctx);
  }

  std::vector<float> gradients() const {
    const HostFloats g = model.arena().host_gradients();
    return {g.span().begin(), g.span().end()};
  }
  std::vector<float> logits() {
    const HostFloats l(ctx, model.logits().as<float>());
    return {l.span().begin(), l.span().end()};
  }

  Context ctx;
  Model model;
  Planner::Memory memory;
  PassArgs pass{.ctx = ctx};
};

/// ||a - b|| / ||b||
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    norm += double{b[i]} * b[i];
  }
  return std::sqrt(difference / norm);
}

}  // namespace tw::test
