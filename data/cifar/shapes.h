// Images of the data set shapes: ten classes, generated, so that a run needs no download.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tw {

/// Draws image `id` of the training (half 0) or test (half 1) set into `planes`: 32 x 32 red, green
/// and blue bytes. It shows a shape of class id % 10 in random colour, position, size and rotation
/// on a random background with clutter. Integer arithmetic: the same bytes on every machine.
void draw_shape(uint32_t half, uint64_t id, std::span<uint8_t> planes);

}  // namespace tw
