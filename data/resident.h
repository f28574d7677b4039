// ResidentData: a whole data set in GPU memory, and training batches made there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "data/dataset.h"
#include "engine/core/context.h"
#include "engine/core/tensor.h"

namespace tw {

class ResidentData {
 public:
  virtual ~ResidentData() = default;
  /// Copies get() of all samples to ctx's device; next() augments them as crop_flip() does.
  static std::unique_ptr<ResidentData> create(Context& ctx, const Dataset& dataset);
  /// Bytes of device memory that create() allocates.
  static size_t bytes(const Dataset& dataset);
  /// Whether the device and the data set support it, and it takes at most half of the device's free
  /// memory.
  static bool fits(const Context& ctx, const Dataset& dataset);

  /// Starts `epoch` with the sample at index `first` of `order`.
  virtual void start(std::span<const uint32_t> order, uint64_t seed, uint32_t epoch,
                     size_t first) = 0;
  /// Queues a kernel that writes the next images [N,H,W,C], u8, cropped and flipped by (seed,
  /// epoch, sample id), and their labels [N], i32: the bytes of a Loader's batch. May be captured
  /// in a graph; each launch advances by N samples.
  virtual void next(const Tensor& images, const Tensor& labels) = 0;
};

using ResidentDataFactory = std::unique_ptr<ResidentData>(Context&, const Dataset&);
inline constinit DispatchTable<ResidentDataFactory> resident_data_dispatch{"resident_data"};

}  // namespace tw
