// Any bytes give an image, with any crop, turn and colour jitter, or a ImageError.
#include "data/augment.h"
#include "data/image/resample.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static tw::ImageDecoder decoder;  // shared: an input must not affect the next one
  static tw::Resampler resampler;
  if (size < 2) return 0;
  // the last two bytes select the augmentation
  const int choice = data[size - 1] * 256 + data[size - 2];
  const auto seed = static_cast<uint64_t>(choice);
  const int side = 1 + choice % 256;
  std::vector<uint8_t> out(static_cast<size_t>(3 * side * side));
  try {
    const auto whole = decoder.open(std::as_bytes(std::span(data, size)), choice % 2 == 0);
    tw::RandomCrop crop{.box = tw::centre_crop(whole.width, whole.height, side * 8 / 7, side)};
    if (choice % 5 != 0) crop = tw::random_resized_crop(whole.width, whole.height, seed, 0, 0);
    const tw::Picture picture = decoder.decode(crop.box, side, side);
    resampler.run(picture, side, side, crop.mirror, out);
    tw::colour_jitter(out, choice % 3 * 0.5, seed, 0, 0);
  } catch (const tw::ImageError&) {
  }
  return 0;
}
