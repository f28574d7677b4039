// A network with random weights and statistics, and its ONNX files.
#pragma once

#include "apps/export/example.h"
#include "apps/export/onnx.h"
#include "engine/core/rng.h"
#include "models/model.h"

namespace tw::test {

/// A size of images that the network takes.
inline Shape image_for(const std::string& model) {
  const std::optional<ImageSides>& sides = models().find(model).value.sides;
  const bool large =
      (sides && sides->least > 64) || model == "alexnet" || model.ends_with("_imagenet");
  return large ? Shape{224, 224, 3} : Shape{32, 32, 3};
}

struct Network {
  explicit Network(const std::string& name) : Network(name, image_for(name)) {}
  Network(const std::string& name, const Shape& image)
      : model(name, {.image = image, .classes = 7}) {
    PlanConfig plan{.batch = 3};
    plan.mean = mean;
    plan.deviation = deviation;
    model.plan(ctx, plan);
    model.allocate(ctx, 1);
    // statistics that a batch norm without effect would not have
    const Philox philox(2, Purpose::test);
    const auto fraction = [&](size_t i) { return static_cast<float>(philox(i)[0] % 1000) / 1000; };
    for (const Parameter& p : model.arena().statistics()) {
      const bool variance = p.name.ends_with("running_var");
      const std::span<float> values = p.in(model.arena().statistic_values());
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = variance ? 0.5f + fraction(p.offset + i) : 0.2f * fraction(p.offset + i);
    }
    for (const Parameter& p : model.arena().parameters())
      if (p.shape.rank() == 1)
        for (size_t i = 0; float& value : p.in(model.arena().values()))
          value += 0.1f * fraction(p.offset + i++);
    model.refresh(ctx);
  }
  std::string onnx(bool fold_batch_norm) {
    return onnx_file(
        model.graph(),
        {.parameters = model.arena().values(), .statistics = model.arena().statistic_values()},
        {.name = model.name(),
         .image = model.spec().image,
         .classes = model.spec().classes,
         .fold_batch_norm = fold_batch_norm,
         .metadata = {{"key", "value"}}});
  }

  const std::vector<float> mean{0.5f, 0.4f, 0.3f}, deviation{0.25f, 0.2f, 0.3f};
  Context ctx;
  Model model;
};

}  // namespace tw::test
