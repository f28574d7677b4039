// Operands to try a convolution with, and exact elements of its result. Included by files in cuda/
// only.
#pragma once

#include <vector>

#include "engine/core/buffer.h"
#include "engine/core/context.h"
#include "engine/cuda/cudnn_plan.h"

namespace tw::ops {

/// Pseudo-random operands of a convolution in device memory, and a few elements of its result,
/// computed in float64 on the host.
class ConvProbe {
 public:
  ConvProbe(Context& ctx, const cudnn::Convolution& c);

  std::byte* x() const { return x_.data(); }
  std::byte* w() const { return w_.data(); }
  std::byte* y() const { return y_.data(); }

  /// Overwrites the result with NaN.
  void clear(Context& ctx);
  /// Whether the result, after a run, has the accuracy of its type: products as exact as f32, TF32
  /// (with `tf32`) or bf16 allows, and sums in f32.
  bool accurate(Context& ctx, bool tf32) const;

 private:
  struct Sample {
    int64_t index;                 // in the result
    double value, norm, products;  // sum of the products, root of that of their squares, number
  };
  const Buffer& result() const;
  Sample sample(int64_t index) const;

  cudnn::Convolution c_;
  Buffer x_, w_, y_;
  std::vector<Sample> samples_;
};

}  // namespace tw::ops
