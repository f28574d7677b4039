#include "apps/export/example.h"

#include "apps/common/measurements.h"
#include "engine/io/safetensors.h"

namespace tw {

namespace {

/// (x / 255 - mean) / deviation, from (N,H,W,C) to (N,C,H,W).
std::vector<float> normalised(const Tensor& images, std::span<const float> mean,
                              std::span<const float> deviation) {
  const Shape& shape = images.shape;
  const auto channels = static_cast<size_t>(shape[3]);
  const auto pixels = static_cast<size_t>(shape[1] * shape[2]);
  const std::span<const uint8_t> bytes = images.as<uint8_t>();
  std::vector<float> input(bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t c = i % channels, pixel = i / channels % pixels, n = i / channels / pixels;
    input[(n * channels + c) * pixels + pixel] =
        (static_cast<float>(bytes[i]) / 255.0f - mean[c]) / deviation[c];
  }
  return input;
}

}  // namespace

void write_example(Context& ctx, Model& model, std::span<const float> mean,
                   std::span<const float> deviation, const std::filesystem::path& path) {
  constexpr uint64_t kSeed = 1;
  fill_random_batch(ctx, model, kSeed);
  model.forward({.ctx = ctx, .training = false});
  const Shape& shape = model.images().shape;
  std::vector<float> input = normalised(model.images(), mean, deviation);
  SafetensorsWriter writer;
  writer.add("images", model.images());
  writer.add("input",
             {input.data(), {shape[0], shape[3], shape[1], shape[2]}, DType::f32, Device::cpu});
  writer.add("logits", model.logits());
  writer.write(path);
}

}  // namespace tw
