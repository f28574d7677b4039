#include "apps/common/random_batch.h"

#include "engine/core/copy.h"
#include "engine/core/rng.h"

namespace tw {

namespace {

void write_batch(Context& ctx, const auto& values, const Tensor& to) {
  copy_bytes(ctx, std::as_bytes(std::span(values)), {static_cast<std::byte*>(to.data), to.bytes()});
}

}  // namespace

void fill_random_batch(Context& ctx, const Model& model, uint64_t seed) {
  const Philox philox(seed, Purpose::test);
  std::vector<uint8_t> pixels(static_cast<size_t>(model.images().numel()));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(philox(i)[0]);
  std::vector<int32_t> labels(static_cast<size_t>(model.labels().numel()));
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<int32_t>(i % static_cast<size_t>(model.spec().classes));
  write_batch(ctx, pixels, model.images());
  write_batch(ctx, labels, model.labels());
}

}  // namespace tw
