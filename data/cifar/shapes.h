// Shapes: a generated, learnable set of ten classes, to try everything without a download.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tw {

/// Draws image `id` of the training (epoch 0) or test (epoch 1) half: 32 x 32 in three planes, a
/// shape of class id % 10 in a random colour, place, size and tilt on a random cluttered ground.
/// Integer arithmetic only: the same bytes on every machine.
void draw_shape(uint32_t half, uint64_t id, std::span<uint8_t> planes);

}  // namespace tw
