#include "data/augment.h"

#include <algorithm>
#include <cstring>

#include "engine/core/rng.h"

namespace tw {

namespace {

/// out[x] = in[width - 1 - x], for whole pixels.
void copy_reversed(const uint8_t* in, size_t width, size_t channels, uint8_t* out) {
  for (size_t x = 0; x < width; ++x)
    for (size_t c = 0; c < channels; ++c)
      out[x * channels + c] = in[(width - 1 - x) * channels + c];
}

}  // namespace

void augment_crop_flip(std::span<const uint8_t> in, Shape image, uint64_t seed, uint32_t epoch,
                       uint64_t id, std::span<uint8_t> out) {
  constexpr int64_t pad = 4;
  const Philox::Block random = Philox(seed, Purpose::augment, epoch)(id);
  const int64_t dy = static_cast<int64_t>(below(random[0], 2 * pad + 1)) - pad;
  const int64_t dx = static_cast<int64_t>(below(random[1], 2 * pad + 1)) - pad;
  const bool flip = (random[2] & 1) != 0;

  const int64_t height = image[0], width = image[1], channels = image[2];
  // columns [begin, end) of the crop are inside the image, the others in the padding
  const int64_t begin = std::clamp<int64_t>(-dx, 0, width);
  const int64_t end = std::clamp<int64_t>(width - dx, begin, width);
  const size_t inside = static_cast<size_t>(end - begin);
  // black before normalisation, as torchvision pads
  std::memset(out.data(), 0, out.size());
  for (int64_t y = std::max<int64_t>(0, -dy); y < std::min(height, height - dy); ++y) {
    const uint8_t* source = &in[((y + dy) * width + begin + dx) * channels];
    uint8_t* row = &out[y * width * channels];
    if (flip)
      copy_reversed(source, inside, channels, row + (width - end) * channels);
    else
      std::memcpy(row + begin * channels, source, inside * channels);
  }
}

}  // namespace tw
