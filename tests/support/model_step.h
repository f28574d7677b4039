// A planned model with a batch in it, for tests that take steps.
#pragma once

#include <cmath>
#include <cstring>

#include "engine/ops/sgd.h"
#include "engine/ops/vector.h"
#include "engine/rng.h"
#include "models/model.h"

namespace tw::test {

/// Random bytes and labels that depend on `id`; rows from `first` on of one endless set.
inline void fill_batch(const Model& model, uint64_t id, int64_t first = 0) {
  const Tensor images = model.images(), labels = model.labels();
  const int64_t pixels = images.numel() / images.shape[0];
  const Philox philox(id, Purpose::test);
  for (int64_t row = 0; row < images.shape[0]; ++row) {
    const auto sample = static_cast<uint64_t>(first + row);
    auto* const bytes = images.as<uint8_t>().data() + row * pixels;
    for (int64_t i = 0; i < pixels; ++i)
      bytes[i] = static_cast<uint8_t>(philox(sample, static_cast<uint32_t>(i))[0]);
    labels.as<int32_t>()[row] = static_cast<int32_t>(
        below(philox(sample, UINT32_MAX)[0], static_cast<uint32_t>(model.spec().classes)));
  }
}

struct PlannedModel {
  PlannedModel(const std::string& name, int64_t batch, DType activations = DType::f32,
               const ModelSpec& spec = {}, int threads = 1)
      : ctx(Device::cpu, threads), model(name, spec) {
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
                    model.arena().gradients(), momentum, values);
    model.refresh(ctx);
  }

  std::vector<float> gradients() const {
    const auto g = model.arena().gradients();
    return {g.begin(), g.end()};
  }
  std::vector<float> logits() const {
    const auto l = model.logits().as<float>();
    return {l.begin(), l.end()};
  }

  Context ctx;
  Model model;
  Planner::Memory memory;
  std::vector<float> momentum = std::vector<float>(model.arena().size());
  Pass pass{.ctx = ctx};
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
