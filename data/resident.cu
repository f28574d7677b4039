#include "data/resident.h"
#include "engine/core/buffer.h"
#include "engine/core/copy.h"
#include "engine/core/error.h"
#include "engine/core/rng.h"
#include "engine/cuda/cuda_kernel.h"

namespace tw {
namespace {

/// The next batch to read. In device memory, because a captured kernel advances it.
struct Cursor {
  uint64_t seed = 0, first = 0;
  uint32_t epoch = 0;
};

struct Samples {
  const uint8_t* images;
  const int32_t* labels;
  const uint32_t* order;
  int64_t height, width, channels;
};

/// One block per image; the same draws as augment_crop_flip().
__global__ void __launch_bounds__(cuda::kThreads)
    crop_flip_kernel(Samples from, Cursor* cursor, uint32_t* ticket, uint8_t* images,
                     int32_t* labels) {
  constexpr int64_t pad = 4;
  const uint32_t id = from.order[cursor->first + blockIdx.x];
  const Philox::Block random = Philox(cursor->seed, Purpose::augment, cursor->epoch)(id);
  const int64_t dy = static_cast<int64_t>(below(random[0], 2 * pad + 1)) - pad;
  const int64_t dx = static_cast<int64_t>(below(random[1], 2 * pad + 1)) - pad;
  const bool flip = (random[2] & 1) != 0;

  const int64_t row = from.width * from.channels, bytes = from.height * row;
  const uint8_t* const image = from.images + id * bytes;
  uint8_t* const out = images + blockIdx.x * bytes;
  for (int64_t i = threadIdx.x; i < bytes; i += blockDim.x) {
    const int64_t c = i % from.channels, x = i / from.channels % from.width;
    const int64_t from_y = i / row + dy, from_x = (flip ? from.width - 1 - x : x) + dx;
    const bool inside = from_y >= 0 && from_y < from.height && from_x >= 0 && from_x < from.width;
    out[i] = inside ? image[from_y * row + from_x * from.channels + c] : uint8_t{0};
  }
  if (threadIdx.x == 0) labels[blockIdx.x] = from.labels[id];
  // the last block to finish advances the cursor: by then all blocks have read it
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1) cursor->first += gridDim.x;
  }
}

class CudaResidentData final : public ResidentData {
 public:
  CudaResidentData(Context& ctx, const Dataset& dataset)
      : ctx_(ctx),
        handles_(ctx.handles<CudaHandles>()),
        shape_(dataset.image),
        size_(dataset.size()),
        images_(Device::cuda, size_ * static_cast<size_t>(shape_.numel())),
        labels_(Device::cuda, size_ * sizeof(int32_t)),
        order_(Device::cuda, size_ * sizeof(uint32_t)),
        cursor_(Device::cuda, sizeof(Cursor)) {
    const auto pixels = static_cast<size_t>(shape_.numel());
    std::vector<uint8_t> images(size_ * pixels);
    std::vector<int32_t> labels(size_);
    for (size_t i = 0; i < size_; ++i)
      labels[i] = dataset.get(i, std::span(images).subspan(i * pixels, pixels));
    copy_bytes(ctx_, std::as_bytes(std::span(images)), images_.as<std::byte>());
    copy_bytes(ctx_, std::as_bytes(std::span(labels)), labels_.as<std::byte>());
  }

  void start(std::span<const uint32_t> order, uint64_t seed, uint32_t epoch,
             size_t first) override {
    check<std::logic_error>(order.size() == size_, "[resident_data] an order of {} samples for {}",
                            order.size(), size_);
    const Cursor cursor{.seed = seed, .first = first, .epoch = epoch};
    copy_bytes(ctx_, std::as_bytes(order), order_.as<std::byte>());
    copy_bytes(ctx_, std::as_bytes(std::span(&cursor, 1)), cursor_.as<std::byte>());
  }

  void next(const Tensor& images, const Tensor& labels) override {
    const Samples from{.images = reinterpret_cast<const uint8_t*>(images_.data()),
                       .labels = reinterpret_cast<const int32_t*>(labels_.data()),
                       .order = reinterpret_cast<const uint32_t*>(order_.data()),
                       .height = shape_[0],
                       .width = shape_[1],
                       .channels = shape_[2]};
    cuda::launch(ctx_, "crop_flip", crop_flip_kernel, static_cast<unsigned>(images.shape[0]),
                 cuda::kThreads, from, reinterpret_cast<Cursor*>(cursor_.data()),
                 handles_.tickets(), images.as<uint8_t>().data(), labels.as<int32_t>().data());
  }

 private:
  Context& ctx_;
  CudaHandles& handles_;
  Shape shape_;
  size_t size_;
  Buffer images_, labels_, order_, cursor_;
};

const bool resident_registered = resident_data_dispatch.add<CudaResidentData>(Device::cuda);

}  // namespace
}  // namespace tw
