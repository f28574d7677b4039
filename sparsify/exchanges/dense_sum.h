// DenseSum: the dense collective of the settings `allreduce.collective` and `allreduce.values`.
#pragma once

#include "comm/collectives/collectives.h"
#include "engine/core/buffer.h"

namespace tw {

class DenseSum {
 public:
  /// UserError as validate().
  explicit DenseSum(const Settings& settings);
  /// UserError if the collective is unknown or cannot send `allreduce.values`.
  static void validate(const Settings& settings);

  /// Sums the vector over all ranks; the same bits on all. Its last float is the status
  /// (StatusSlot). Fault if a sum is beyond the range of fp16. A short vector of a GPU is summed in
  /// host memory: between GPUs each of many messages would cost a launch.
  void operator()(Context& ctx, Communicator& comm, std::span<float> values_status);

  size_t value_bytes() const { return size_of(format_); }
  /// Seconds for n values; NaN if the collective has no model.
  double seconds(const LinkCost& link, int ranks, size_t n) const;
  /// Bytes that all ranks send for n values and the status, with a bandwidth-optimal collective:
  /// 2 (P-1) b (n+1), for values of b bytes.
  uint64_t wire_bytes(int ranks, size_t n) const {
    return 2 * static_cast<uint64_t>(ranks - 1) * size_of(format_) * (n + 1);
  }

 private:
  static constexpr size_t kShort = size_t{1} << 14;

  ValueFormat format_;
  Collective<Allreduce> collective_;
  Allreduce allreduce_;
  Buffer scratch_;
  std::vector<float> host_;
};

}  // namespace tw
