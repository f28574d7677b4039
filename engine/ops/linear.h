// Linear: y[n,o] = b[o] + sum_i x[n,i] * w[o,i].
#pragma once

#include <memory>

#include "engine/core/context.h"
#include "engine/ops/vector.h"

namespace tw::ops {

struct LinearShape {
  int64_t batch, in_features, out_features;
  DType dtype = DType::f32;      ///< of x and dx
  DType out_dtype = DType::f32;  ///< of y and dy (fp32 for logits)
  bool input_gradient = true;

  // of each of the three products: forward, data, weights
  int64_t flops() const { return 2 * batch * in_features * out_features; }
  int64_t bytes() const {
    return in_features * (batch + out_features) * static_cast<int64_t>(size_of(dtype)) +
           batch * out_features * static_cast<int64_t>(size_of(out_dtype));
  }
};

class Linear {
 public:
  virtual ~Linear() = default;
  /// Prepares the layer for one shape; throws UserError on an impossible one.
  static std::unique_ptr<Linear> create(Context& ctx, const LinearShape& shape);

  /// Bytes of Context::scratch() that the calls below need.
  virtual size_t scratch_bytes() const = 0;
  /// Bytes of the packed compute copy of the weights.
  virtual size_t packed_bytes() const = 0;
  /// Writes the packed compute copy of w (fp32 [out, in]), or adds the transfer that does to
  /// `later`; called after every update.
  virtual void pack(Context& ctx, const Tensor& w, const Tensor& packed, Transfers& later) = 0;
  virtual void forward(Context& ctx, const Tensor& x, const Tensor& packed, const Tensor& bias,
                       const Tensor& y) = 0;
  /// Bytes that the two calls of backward share: backward_weights, which comes first, leaves a
  /// conversion of dy in `staged` for backward_data.
  virtual size_t staged_bytes() const { return 0; }
  /// Writes, or with `accumulate` adds to, dw (fp32 [out, in]) and dbias (fp32 [out]).
  virtual void backward_weights(Context& ctx, const Tensor& x, const Tensor& dy, const Tensor& dw,
                                const Tensor& dbias, bool accumulate, const Tensor& staged) = 0;
  virtual void backward_data(Context& ctx, const Tensor& dy, const Tensor& packed, const Tensor& dx,
                             const Tensor& staged) = 0;

 protected:
  explicit Linear(const LinearShape& shape) : shape_(shape) {}
  /// x may be [N,H,W,C]: only the number of rows and their length matter.
  void expect(const char* what, const Tensor& tensor, int64_t columns, DType dtype) const;

  LinearShape shape_;
};

using LinearFactory = std::unique_ptr<Linear>(Context&, const LinearShape&);
inline constinit DispatchTable<LinearFactory> linear_dispatch{"linear"};

}  // namespace tw::ops
