// Conv2d: 2-D convolution, NHWC activations, OHWI weights.
//   y[n,p,q,o] = b[o] + sum_{r,s,i} x[n, p*stride+r-pad, q*stride+s-pad, i] * w[o,r,s,i]
#pragma once

#include <memory>
#include <optional>

#include "engine/core/context.h"
#include "engine/ops/vector.h"

namespace tw::ops {

struct Conv2dShape {
  int64_t batch, height, width, in_channels, out_channels;
  int64_t kernel = 3, stride = 1, padding = 1;
  DType dtype = DType::f32;  ///< of x, y, dx, dy; weights and their gradients are fp32
  bool bias = false;
  bool input_gradient = true;  ///< false for the first layer of a network

  int64_t out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  int64_t out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  Shape x() const { return {batch, height, width, in_channels}; }
  Shape y() const { return {batch, out_height(), out_width(), out_channels}; }
  Shape w() const { return {out_channels, kernel, kernel, in_channels}; }

  // of each of the three products: forward, data, weights
  int64_t flops() const { return 2 * y().numel() * kernel * kernel * in_channels; }
  int64_t bytes() const {
    return (x().numel() + y().numel() + w().numel()) * static_cast<int64_t>(size_of(dtype));
  }
};

class Conv2d {
 public:
  virtual ~Conv2d() = default;
  /// Prepares the convolution of one shape; throws UserError on an impossible one.
  static std::unique_ptr<Conv2d> create(Context& ctx, const Conv2dShape& shape);

  /// Bytes of Context::scratch() that the calls below need.
  virtual size_t scratch_bytes() const = 0;
  /// Bytes of the packed compute copy of the weights.
  virtual size_t packed_bytes() const = 0;

  /// Writes the packed compute copy of the fp32 OHWI weights, or adds the transfer that does to
  /// `later`; called after every update.
  virtual void pack(Context& ctx, const Tensor& w, const Tensor& packed, Transfers& later) = 0;
  /// `bias` (fp32, [O]) is ignored unless Conv2dShape::bias is set.
  virtual void forward(Context& ctx, const Tensor& x, const Tensor& packed, const Tensor& bias,
                       const Tensor& y) = 0;
  virtual void backward_data(Context& ctx, const Tensor& dy, const Tensor& packed,
                             const Tensor& dx) = 0;
  /// Bytes that backward_weights needs besides, until its transfer has run.
  virtual size_t staged_bytes() const { return 0; }
  /// Bytes with which backward_weights may run beside later ops; none: it never does.
  virtual std::optional<size_t> beside_bytes() const { return {}; }
  /// Writes, or with `accumulate` adds to, dw (fp32 OHWI) and dbias (fp32). `staged`: memory of
  /// staged_bytes(). `later`, if given, receives the transfer that writes dw, on a GPU; the caller
  /// runs it. `beside`: memory of beside_bytes(), or empty. With both, x, dy and `beside` are in
  /// use until the next call of any convolution or transfer().
  virtual void backward_weights(Context& ctx, const Tensor& x, const Tensor& dy, const Tensor& dw,
                                const Tensor& dbias, bool accumulate, const Tensor& staged,
                                const Tensor& beside, Transfers* later) = 0;

 protected:
  explicit Conv2d(const Conv2dShape& shape) : shape_(shape) {}
  /// Throws UserError unless the tensor has this shape and the type of activations.
  void expect(const char* what, const Tensor& tensor, const Shape& shape) const;

  Conv2dShape shape_;
};

using Conv2dFactory = std::unique_ptr<Conv2d>(Context&, const Conv2dShape&);
inline constinit DispatchTable<Conv2dFactory> conv2d_dispatch{"conv2d"};

}  // namespace tw::ops
