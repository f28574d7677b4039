#include "apps/common/random_batch.h"

#include "engine/core/rng.h"

namespace tw {

void fill_random_batch(const Model& model, uint64_t seed) {
  const Philox philox(seed, Purpose::test);
  const std::span<uint8_t> pixels = model.images().as<uint8_t>();
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(philox(i)[0]);
  const std::span<int32_t> labels = model.labels().as<int32_t>();
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<int32_t>(i % static_cast<size_t>(model.spec().classes));
}

}  // namespace tw
