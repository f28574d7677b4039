// Convolution on cuDNN, NHWC on both sides. choose_plan.h chooses the plan of each pass.
#include "engine/ops/conv2d.h"

#include <algorithm>
#include <optional>

#include "engine/cuda/side_stream.h"
#include "engine/ops/cuda/choose_plan.h"
#include "engine/ops/cuda/matrix.h"

namespace tw::ops {
namespace {

using cudnn::ConvPlan, cudnn::Convolution, cudnn::ConvPass;

Convolution describe(const Conv2dShape& s, ConvPass pass, bool accumulate = false) {
  return {.pass = pass,
          .x = {s.batch, s.in_channels, s.height, s.width},
          .w = {s.out_channels, s.in_channels, s.kernel, s.kernel},
          .y = {s.batch, s.out_channels, s.out_height(), s.out_width()},
          .x_type = s.dtype,
          .w_type = s.dtype,
          .y_type = s.dtype,
          .stride = s.stride,
          .padding = s.padding,
          .accumulate = accumulate};
}

class Conv2dCuda final : public Conv2d {
 public:
  Conv2dCuda(Context& ctx, const Conv2dShape& shape)
      : Conv2d(shape),
        forward_(choose_plan(ctx, describe(shape, ConvPass::forward))),
        backward_weights_(choose_plan(ctx, describe(shape, ConvPass::backward_filter))) {
    if (shape.input_gradient)
      backward_data_.emplace(choose_plan(ctx, describe(shape, ConvPass::backward_data)));
    if (beside_bytes()) ctx.handles<CudaHandles>().side();  // created before a step may be captured
  }

  // cuDNN's workspace; bias: sums of dy
  size_t scratch_bytes() const override {
    size_t bytes = std::max(forward_.workspace_bytes(), backward_weights_.workspace_bytes());
    if (backward_data_) bytes = std::max(bytes, backward_data_->workspace_bytes());
    return shape_.bias ? std::max(bytes, column_sums_bytes(shape_.y())) : bytes;
  }
  size_t staged_bytes() const override { return packed_bytes(); }
  size_t packed_bytes() const override {
    return static_cast<size_t>(shape_.w().numel()) * size_of(shape_.dtype);
  }
  // a larger one fills the GPU, and holds much memory for longer
  std::optional<size_t> beside_bytes() const override {
    constexpr size_t kMost = size_t{64} << 20;
    const size_t workspace = backward_weights_.workspace_bytes();
    if (static_cast<size_t>(shape_.bytes()) + workspace > kMost) return {};
    return workspace;
  }

  void pack(Context&, const Tensor& w, const Tensor& packed, Transfers& later) override {
    later.push_back({w, {packed.data, w.shape, shape_.dtype, w.device}});
  }

  void forward(Context& ctx, const Tensor& x, const Tensor& packed, const Tensor& bias,
               const Tensor& y) override {
    expect("x", x, shape_.x());
    expect("y", y, shape_.y());
    run(ctx, forward_, x.data, packed.data, y.data);
    if (shape_.bias) add_bias(ctx, y, static_cast<const float*>(bias.data), y);
  }

  void backward_data(Context& ctx, const Tensor& dy, const Tensor& packed,
                     const Tensor& dx) override {
    check<std::logic_error>(backward_data_.has_value(), "[conv2d] made without an input gradient");
    expect("dy", dy, shape_.y());
    expect("dx", dx, shape_.x());
    run(ctx, *backward_data_, dx.data, packed.data, dy.data);
  }

  // cuDNN writes dw in the type of x and dy; a transfer converts it to the fp32 gradient
  void backward_weights(Context& ctx, const Tensor& x, const Tensor& dy, const Tensor& dw,
                        const Tensor& dbias, bool accumulate, const Tensor& staged,
                        const Tensor& beside, Transfers* later) override {
    expect("x", x, shape_.x());
    expect("dy", dy, shape_.y());
    check<std::logic_error>(staged.data != nullptr, "[conv2d] no memory for dw");
    auto& handles = ctx.handles<CudaHandles>();
    handles.join_side();
    if (later != nullptr && beside.data != nullptr) {
      handles.side().fork();
      backward_weights_.run(handles.side().cudnn(), x.data, staged.data, dy.data, beside.data);
    } else {
      run(ctx, backward_weights_, x.data, staged.data, dy.data);
    }
    const Transfer delivery{{staged.data, shape_.w(), shape_.dtype, Device::cuda}, dw, accumulate};
    later != nullptr ? later->push_back(delivery) : transfer(ctx, {delivery});
    if (shape_.bias)
      column_sums(ctx, dy, ctx.scratch().data(), accumulate, static_cast<float*>(dbias.data));
  }

 private:
  void run(Context& ctx, ConvPlan& plan, void* x, void* w, void* y) const {
    check<std::logic_error>(ctx.scratch().size() >= scratch_bytes(),
                            "[conv2d] {} bytes of scratch; {} are needed", ctx.scratch().size(),
                            scratch_bytes());
    plan.run(ctx.handles<CudaHandles>().cudnn(), x, w, y, ctx.scratch().data());
  }

  ConvPlan forward_, backward_weights_;
  std::optional<ConvPlan> backward_data_;
};

std::unique_ptr<Conv2d> create_cuda(Context& ctx, const Conv2dShape& shape) {
  return std::make_unique<Conv2dCuda>(ctx, shape);
}

const bool conv2d_registered = conv2d_dispatch.add(Device::cuda, create_cuda);

}  // namespace
}  // namespace tw::ops
