// Any bytes: a picture or a JpegError, whatever part of it is asked for.
#include <algorithm>
#include <cstring>

#include "data/augment.h"
#include "data/resample.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static tw::JpegDecoder decoder;  // one for all inputs: none may spoil it for the next
  static tw::Resampler resampler;
  if (size < 2) return 0;
  // the last two bytes choose the part
  const uint64_t seed = data[size - 1] * 256u + data[size - 2];
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    const auto whole = decoder.open(bytes);
    if (whole.width > 1000 || whole.height > 1000) return 0;  // right, but slow
    const auto crop = tw::random_resized_crop(whole.width, whole.height, seed, 0, 0);
    const int side = 1 + static_cast<int>(seed % 64);
    uint8_t out[64 * 64 * 3];
    resampler.run(decoder.decode(crop.box, side, side), side, side, crop.mirror, out);
  } catch (const tw::JpegError&) {
  }
  return 0;
}
