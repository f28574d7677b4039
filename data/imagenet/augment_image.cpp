// Augmentation of images of any size; crop and flip of small images is in augment.cpp.
#include <algorithm>
#include <array>
#include <cmath>

#include "data/augment.h"
#include "engine/core/rng.h"

#define TW_KERNELS "data/imagenet/augment_image.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::TW_CPU {

/// BT.601 luma in integers.
inline int luma(const uint8_t* rgb) {
  return (19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2]) >> 16;
}

inline uint8_t clamped(float value) {
  return static_cast<uint8_t>(std::clamp(value + 0.5f, 0.0f, 255.0f));
}

/// Brightness, then contrast about the mean luma, then saturation about that of each pixel.
inline void jitter(std::span<uint8_t> pixels, float brightness, float contrast, float saturation) {
  int64_t sum = 0;
  for (uint8_t& value : pixels) value = clamped(brightness * value);
  for (size_t i = 0; i < pixels.size(); i += 3) sum += luma(&pixels[i]);
  const float mean =
      static_cast<float>(static_cast<double>(sum) / (static_cast<double>(pixels.size()) / 3));
  for (uint8_t& value : pixels) value = clamped(mean + contrast * (value - mean));
  for (size_t i = 0; i < pixels.size(); i += 3) {
    const auto gray = static_cast<float>(luma(&pixels[i]));
    for (size_t c = i; c < i + 3; ++c) pixels[c] = clamped(gray + saturation * (pixels[c] - gray));
  }
}

}  // namespace tw::TW_CPU
#else
namespace tw {

namespace {

/// Philox counters of one sample: ten attempts at a crop, the mirror, the colours.
enum : uint32_t { kAttempts = 10, kMirror = kAttempts, kColour };

/// Uniform in [low, high).
double between(uint32_t bits, double low, double high) {
  return low + (high - low) * (bits * 0x1p-32);
}

/// The largest centre crop with an allowed aspect ratio.
Box fallback(int width, int height) {
  const double ratio = static_cast<double>(width) / height;
  double w = width, h = height;
  if (ratio < 3.0 / 4) h = std::round(w / (3.0 / 4));
  if (ratio > 4.0 / 3) w = std::round(h * (4.0 / 3));
  return {std::floor((width - w) / 2), std::floor((height - h) / 2), w, h};
}

Box crop(int width, int height, const Philox& random, uint64_t id) {
  for (uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    const Philox::Block words = random(id, attempt);
    const double area = static_cast<double>(width) * height * between(words[0], 0.08, 1);
    const double ratio = std::exp(between(words[1], std::log(3.0 / 4), std::log(4.0 / 3)));
    const int w = static_cast<int>(std::lround(std::sqrt(area * ratio)));
    const int h = static_cast<int>(std::lround(std::sqrt(area / ratio)));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const uint32_t x = below(words[2], static_cast<uint32_t>(width - w + 1));
    const uint32_t y = below(words[3], static_cast<uint32_t>(height - h + 1));
    return {static_cast<double>(x), static_cast<double>(y), static_cast<double>(w),
            static_cast<double>(h)};
  }
  return fallback(width, height);
}

}  // namespace

RandomCrop random_resized_crop(int width, int height, uint64_t seed, uint32_t epoch, uint64_t id) {
  const Philox random(seed, Purpose::augment, epoch);
  return {crop(width, height, random, id), (random(id, kMirror)[0] & 1) != 0};
}

Box centre_crop(int width, int height, int resized, int size) {
  // as torchvision: the longer side is truncated to whole pixels, and so is the margin
  const int shorter = std::min(width, height);
  const auto side = [&](int length) {
    return length == shorter ? resized
                             : static_cast<int>(static_cast<double>(resized) * length / shorter);
  };
  const auto crop_axis = [&](int length, double& begin, double& extent) {
    const int scaled = side(length);
    const double margin = std::nearbyint((scaled - size) / 2.0);
    begin = margin * length / scaled;
    extent = static_cast<double>(size) * length / scaled;
  };
  Box box;
  crop_axis(width, box.x, box.width);
  crop_axis(height, box.y, box.height);
  return box;
}

void colour_jitter(std::span<uint8_t> pixels, double strength, uint64_t seed, uint32_t epoch,
                   uint64_t id) {
  const Philox::Block words = Philox(seed, Purpose::augment, epoch)(id, kColour);
  const auto factor = [&](size_t i) {
    return static_cast<float>(between(words[i], std::max(0.0, 1 - strength), 1 + strength));
  };
  TW_KERNEL(jitter, pixels, factor(0), factor(1), factor(2));
}

}  // namespace tw
#endif
