// ResidentData: a data set that lies in a GPU's memory, and training batches put together there.
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
  /// Copies all samples to ctx's device. The data set's augmentation is pad-4 crop and flip.
  static std::unique_ptr<ResidentData> create(Context& ctx, const Dataset& dataset);
  /// Memory that takes.
  static size_t bytes(const Dataset& dataset);
  /// Whether a data set can lie there: one in memory, of at most half of what is free on the
  /// device.
  static bool fits(const Context& ctx, const Dataset& dataset);

  /// Starts `epoch`, whose samples come in `order`, at sample number `first` of it.
  virtual void start(std::span<const uint32_t> order, uint64_t seed, uint32_t epoch,
                     size_t first) = 0;
  /// Writes the next images [N,H,W,C], cropped and flipped by (seed, epoch, sample id), and their
  /// labels [N]: the bytes a Loader yields. Can be recorded; each launch goes on by N samples.
  virtual void next(const Tensor& images, const Tensor& labels) = 0;
};

using ResidentDataFactory = std::unique_ptr<ResidentData>(Context&, const Dataset&);
extern DispatchTable<ResidentDataFactory> resident_data_dispatch;

}  // namespace tw
