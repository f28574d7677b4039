#include "engine/ops/cpu/widened.h"

#include "engine/core/cpu_features.h"
#include "engine/ops/cpu/conv2d.h"
#include "engine/ops/vector.h"

namespace tw::ops {
namespace {

/// Two f32 tensors in scratch, behind what the op itself needs there.
class Copies {
 public:
  Copies(size_t scratch_of_op, int64_t first, int64_t second)
      : first_((scratch_of_op + 63) / 64 * 64),
        second_(first_ + unsigned_of(first) * sizeof(float)),
        end_(second_ + unsigned_of(second) * sizeof(float)) {}

  size_t scratch_bytes() const { return end_; }
  Tensor first(Context& ctx, const Tensor& like) const { return at(ctx, first_, like); }
  Tensor second(Context& ctx, const Tensor& like) const { return at(ctx, second_, like); }

 private:
  static Tensor at(Context& ctx, size_t offset, const Tensor& like) {
    return {ctx.scratch().data() + offset, like.shape, DType::f32, Device::cpu};
  }

  size_t first_, second_, end_;
};

Tensor widened(Context& ctx, const Tensor& from, const Tensor& copy) {
  convert(ctx, from, copy);
  return copy;
}

/// A convolution or linear layer, with the f32 one that computes it.
template <class Op>
class Widened : public Op {
 public:
  size_t scratch_bytes() const override { return copies_.scratch_bytes(); }
  size_t packed_bytes() const override { return op_->packed_bytes(); }
  void pack(Context& ctx, const Tensor& w, const Tensor& packed, Transfers& later) override {
    op_->pack(ctx, w, packed, later);
  }

 protected:
  /// x and y: elements of the input and of the output.
  Widened(const auto& shape, std::unique_ptr<Op> op, int64_t x, int64_t y)
      : Op(shape), op_(std::move(op)), copies_(op_->scratch_bytes(), x, y) {}

  std::unique_ptr<Op> op_;
  Copies copies_;
};

class WidenedConv2d final : public Widened<Conv2d> {
 public:
  WidenedConv2d(Context& ctx, const Conv2dShape& shape, const Conv2dShape& wide)
      : Widened(shape, create(ctx, wide), shape.x().numel(), shape.y().numel()) {}

  void forward(Context& ctx, const Tensor& x, const Tensor& packed, const Tensor& bias,
               const Tensor& y) override {
    expect("x", x, shape_.x());
    expect("y", y, shape_.y());
    const Tensor result = copies_.second(ctx, y);
    op_->forward(ctx, widened(ctx, x, copies_.first(ctx, x)), packed, bias, result);
    convert(ctx, result, y);
  }

  void backward_data(Context& ctx, const Tensor& dy, const Tensor& packed,
                     const Tensor& dx) override {
    expect("dy", dy, shape_.y());
    expect("dx", dx, shape_.x());
    const Tensor result = copies_.first(ctx, dx);
    op_->backward_data(ctx, widened(ctx, dy, copies_.second(ctx, dy)), packed, result);
    convert(ctx, result, dx);
  }

  void backward_weights(Context& ctx, const Tensor& x, const Tensor& dy, const Tensor& dw,
                        const Tensor& dbias, bool accumulate, const Tensor& staged,
                        const Tensor& beside, Transfers* later) override {
    expect("x", x, shape_.x());
    expect("dy", dy, shape_.y());
    op_->backward_weights(ctx, widened(ctx, x, copies_.first(ctx, x)),
                          widened(ctx, dy, copies_.second(ctx, dy)), dw, dbias, accumulate, staged,
                          beside, later);
  }
};

class WidenedLinear final : public Widened<Linear> {
 public:
  WidenedLinear(Context& ctx, const LinearShape& shape, const LinearShape& wide)
      : Widened(shape, create(ctx, wide), shape.batch * shape.in_features,
                shape.batch * shape.out_features) {}

  void forward(Context& ctx, const Tensor& x, const Tensor& packed, const Tensor& bias,
               const Tensor& y) override {
    expect("x", x, shape_.in_features, shape_.dtype);
    expect("y", y, shape_.out_features, shape_.out_dtype);
    const Tensor result = copies_.second(ctx, y);
    op_->forward(ctx, widened(ctx, x, copies_.first(ctx, x)), packed, bias, result);
    convert(ctx, result, y);
  }

  void backward_weights(Context& ctx, const Tensor& x, const Tensor& dy, const Tensor& dw,
                        const Tensor& dbias, bool accumulate, const Tensor& staged) override {
    expect("x", x, shape_.in_features, shape_.dtype);
    expect("dy", dy, shape_.out_features, shape_.out_dtype);
    op_->backward_weights(ctx, widened(ctx, x, copies_.first(ctx, x)),
                          widened(ctx, dy, copies_.second(ctx, dy)), dw, dbias, accumulate, staged);
  }

  void backward_data(Context& ctx, const Tensor& dy, const Tensor& packed, const Tensor& dx,
                     const Tensor& staged) override {
    expect("dy", dy, shape_.out_features, shape_.out_dtype);
    expect("dx", dx, shape_.in_features, shape_.dtype);
    const Tensor result = copies_.first(ctx, dx);
    op_->backward_data(ctx, widened(ctx, dy, copies_.second(ctx, dy)), packed, result, staged);
    convert(ctx, result, dx);
  }
};

}  // namespace

bool needs_widening(DType dtype) { return dtype == DType::bf16 && !cpu_has_avx512(); }

std::unique_ptr<Conv2d> create_widened_conv2d(Context& ctx, const Conv2dShape& shape) {
  Conv2dShape wide = shape;
  wide.dtype = DType::f32;
  return std::make_unique<WidenedConv2d>(ctx, shape, wide);
}

std::unique_ptr<Linear> create_widened_linear(Context& ctx, const LinearShape& shape) {
  LinearShape wide = shape;
  wide.dtype = wide.out_dtype = DType::f32;
  return std::make_unique<WidenedLinear>(ctx, shape, wide);
}

}  // namespace tw::ops
