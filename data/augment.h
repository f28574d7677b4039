// Random augmentation of training images. Every draw is a function of (seed, epoch, sample id).
#pragma once

#include <cstdint>
#include <span>

#include "data/image/decoder.h"
#include "engine/core/shape.h"

namespace tw {

/// Pads an H x W x C image by 4 black pixels on each side, crops a random H x W window and flips it
/// left to right half of the time. `in` and `out` must not overlap.
void augment_crop_flip(std::span<const uint8_t> in, Shape image, uint64_t seed, uint32_t epoch,
                       uint64_t id, std::span<uint8_t> out);

/// The rectangle of an image, in its pixels, that becomes a sample.
struct RandomCrop {
  Box box;
  bool mirror = false;
};

/// A crop of 8 to 100 % of the area at an aspect ratio of 3/4 to 4/3 (Szegedy et al., "Going Deeper
/// with Convolutions", CVPR 2015), in whole pixels as torchvision's RandomResizedCrop draws it;
/// mirrored half of the time. width and height are the image's, in pixels.
RandomCrop random_resized_crop(int width, int height, uint64_t seed, uint32_t epoch, uint64_t id);

/// The centre crop of `size` x `size` pixels of an image resized so that its shorter side is
/// `resized`, as a rectangle in the pixels of the original.
Box centre_crop(int width, int height, int resized, int size);

/// Changes brightness, then contrast, then saturation of RGB pixels in place, each by a factor
/// drawn from 1 - strength to 1 + strength.
void colour_jitter(std::span<uint8_t> pixels, double strength, uint64_t seed, uint32_t epoch,
                   uint64_t id);

}  // namespace tw
