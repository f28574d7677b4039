// What training images go through, drawn from (seed, epoch, sample id) alone.
#pragma once

#include <cstdint>
#include <span>

#include "data/jpeg/decoder.h"
#include "engine/core/shape.h"

namespace tw {

/// Pad-4 random crop and horizontal flip of one H x W x C image, drawn from (seed, epoch, id).
void augment_crop_flip(std::span<const uint8_t> in, Shape image, uint64_t seed, uint32_t epoch,
                       uint64_t id, std::span<uint8_t> out);

/// Where a training image is cut out of a photograph.
struct RandomCrop {
  Box box;
  bool mirror = false;
};

/// 8 to 100 % of the area at an aspect ratio of 3/4 to 4/3 (Szegedy et al., CVPR 2015, section 6),
/// whole pixels as in torchvision's RandomResizedCrop; mirrored half of the time.
RandomCrop random_resized_crop(int width, int height, uint64_t seed, uint32_t epoch, uint64_t id);

/// The middle `size` x `size` pixels of an image whose shorter side was scaled to `resized`.
Box centre_crop(int width, int height, int resized, int size);

/// Brightness, then contrast, then saturation, each by a factor drawn from 1 - strength to
/// 1 + strength, over RGB pixels.
void colour_jitter(std::span<uint8_t> pixels, double strength, uint64_t seed, uint32_t epoch,
                   uint64_t id);

}  // namespace tw
