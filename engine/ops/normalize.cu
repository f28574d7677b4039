#include <array>

#include "engine/cuda/cuda_kernel.h"
#include "engine/ops/element.h"
#include "engine/ops/normalize.h"

namespace tw::ops {
namespace {

struct Normalize {
  uint32_t channels;
  std::array<float, 256> scale, shift;

  __device__ float operator()(int64_t i, float x) const {
    const auto c = static_cast<uint32_t>(static_cast<uint64_t>(i) % channels);
    return x * scale[c] + shift[c];
  }
};

void normalize_cuda(Context& ctx, const Tensor& x, std::span<const float> mean,
                    std::span<const float> deviation, const Tensor& y) {
  Normalize body{};
  body.channels = static_cast<uint32_t>(mean.size());
  for (size_t c = 0; c < mean.size(); ++c) {
    body.scale[c] = 1.0f / (255.0f * deviation[c]);
    body.shift[c] = -mean[c] / deviation[c];
  }
  with_activation_type(y.dtype, [&]<class T>() {
    cuda::map(ctx, "normalize", x.numel(), body, y.as<T>().data(),
              static_cast<const uint8_t*>(x.data));
  });
}

const bool normalize_registered = normalize_dispatch.add(Device::cuda, normalize_cuda);

}  // namespace
}  // namespace tw::ops
