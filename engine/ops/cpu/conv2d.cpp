// CPU convolution on oneDNN. Tensors are NHWC outside; conv2d_choice chooses the layout inside.
#include "engine/ops/cpu/conv2d.h"

#include "engine/core/parallel.h"
#include "engine/ops/cpu/widened.h"

namespace tw::ops {
namespace {

using namespace onednn;

void* rows_from(const Tensor& tensor, int64_t row) {
  return static_cast<std::byte*>(tensor.data) +
         tensor.bytes() / static_cast<size_t>(tensor.shape[0]) * static_cast<size_t>(row);
}

/// Weight gradients by one kernel over the batch, or one per thread over a part of it.
class WeightsGradient {
 public:
  WeightsGradient(const Context& ctx, const Conv2dShape& shape);

  size_t scratch_bytes() const { return scratch_bytes_; }
  void run(Context& ctx, const Tensor& x, const Tensor& dy, const Tensor& dw, const Tensor& dbias,
           bool accumulate);

 private:
  struct Part {
    Kernel kernel;
    int64_t begin, end;  // rows of the batch
    size_t scratch;      // offset of its own scratch
  };
  void add_part(const dnnl::engine& engine, const Conv2dShape& shape, int64_t begin, int64_t end);

  bool bias_;
  std::vector<Part> parts_;
  size_t scratch_bytes_ = 0;
};

WeightsGradient::WeightsGradient(const Context& ctx, const Conv2dShape& s) : bias_(s.bias) {
  const dnnl::engine& engine = ctx.handles<CpuHandles>().engine;
  if (!splits_batch(s, ctx.threads())) {
    add_part(engine, s, 0, s.batch);
    return;
  }
  const int64_t n = ctx.threads();
  const OneThread one_thread(ctx);
  for (int64_t i = 0; i < n; ++i) add_part(engine, s, s.batch * i / n, s.batch * (i + 1) / n);
}

void WeightsGradient::add_part(const dnnl::engine& engine, const Conv2dShape& shape, int64_t begin,
                               int64_t end) {
  Conv2dShape s = shape;
  s.batch = end - begin;
  const ConvOutside outside(s);
  const ConvBackwardWeights desc = choose_backward_weights(engine, s);
  std::vector<Operand> outputs{{DNNL_ARG_DIFF_WEIGHTS, outside.w, desc.diff_weights_desc()}};
  if (s.bias) outputs.push_back({DNNL_ARG_DIFF_BIAS, outside.bias, desc.diff_bias_desc()});
  const std::vector<Operand> inputs{{DNNL_ARG_SRC, outside.x, desc.src_desc()},
                                    {DNNL_ARG_DIFF_DST, outside.y, desc.diff_dst_desc()}};
  parts_.push_back({Kernel(engine, desc, inputs, outputs, true), begin, end, scratch_bytes_});
  scratch_bytes_ += parts_.back().kernel.scratch_bytes();
}

void WeightsGradient::run(Context& ctx, const Tensor& x, const Tensor& dy, const Tensor& dw,
                          const Tensor& dbias, bool accumulate) {
  // parts after the first add to its result
  const auto adds = [&](const Part& part) { return accumulate || part.begin > 0; };
  const auto compute = [&](Part& part) {
    const auto scratch = ctx.scratch().subspan(part.scratch, part.kernel.scratch_bytes());
    void* const in = rows_from(x, part.begin);
    void* const out = rows_from(dy, part.begin);
    if (bias_)
      part.kernel.compute(ctx, scratch, {in, out}, {dw.data, dbias.data}, adds(part));
    else
      part.kernel.compute(ctx, scratch, {in, out}, {dw.data}, adds(part));
  };
  if (parts_.size() == 1)
    compute(parts_[0]);
  else
    parallel_for(ctx, parts_.size(), 1, [&](size_t i, size_t) { compute(parts_[i]); });
  for (Part& part : parts_) part.kernel.deliver(ctx, adds(part));
}

class Conv2dCpu final : public Conv2d {
 public:
  Conv2dCpu(Context& ctx, const Conv2dShape& shape);

  size_t scratch_bytes() const override {
    return std::max({weights_.scratch_bytes(), forward_.scratch_bytes(),
                     backward_data_.scratch_bytes(), backward_weights_.scratch_bytes()});
  }
  size_t packed_bytes() const override { return weights_.bytes(); }

  void pack(Context& ctx, const Tensor& w, const Tensor& packed, Transfers&) override {
    weights_.pack(ctx, w, packed);
  }

  void forward(Context& ctx, const Tensor& x, const Tensor& packed, const Tensor& bias,
               const Tensor& y) override {
    expect("x", x, shape_.x());
    expect("y", y, shape_.y());
    if (shape_.bias)
      forward_.run(ctx, {x.data, weights_.for_forward(packed), bias.data}, {y.data});
    else
      forward_.run(ctx, {x.data, weights_.for_forward(packed)}, {y.data});
  }

  void backward_data(Context& ctx, const Tensor& dy, const Tensor& packed,
                     const Tensor& dx) override {
    check<std::logic_error>(shape_.input_gradient, "[conv2d] made without an input gradient");
    expect("dy", dy, shape_.y());
    expect("dx", dx, shape_.x());
    backward_data_.run(ctx, {dy.data, weights_.for_backward(packed)}, {dx.data});
  }

  void backward_weights(Context& ctx, const Tensor& x, const Tensor& dy, const Tensor& dw,
                        const Tensor& dbias, bool accumulate, const Tensor&, const Tensor&,
                        Transfers*) override {
    expect("x", x, shape_.x());
    expect("dy", dy, shape_.y());
    backward_weights_.run(ctx, x, dy, dw, dbias, accumulate);
  }

 private:
  PackedWeights weights_;
  Kernel forward_, backward_data_;
  WeightsGradient backward_weights_;
};

Conv2dCpu::Conv2dCpu(Context& ctx, const Conv2dShape& s) : Conv2d(s), backward_weights_(ctx, s) {
  const dnnl::engine& engine = ctx.handles<CpuHandles>().engine;
  const ConvOutside outside(s);
  const ConvForward f = choose_forward(engine, s);
  std::vector<Operand> inputs{{DNNL_ARG_SRC, outside.x, f.src_desc()},
                              {DNNL_ARG_WEIGHTS, f.weights_desc(), f.weights_desc()}};
  if (s.bias) inputs.push_back({DNNL_ARG_BIAS, outside.bias, f.bias_desc()});
  forward_ = Kernel(engine, f, inputs, {{DNNL_ARG_DST, outside.y, f.dst_desc()}});
  Desc backward;
  if (s.input_gradient) {
    const ConvBackwardData b = choose_backward_data(engine, s);
    backward = b.weights_desc();
    backward_data_ = Kernel(
        engine, b,
        {{DNNL_ARG_DIFF_DST, outside.y, b.diff_dst_desc()}, {DNNL_ARG_WEIGHTS, backward, backward}},
        {{DNNL_ARG_DIFF_SRC, outside.x, b.diff_src_desc()}});
  }
  weights_ = PackedWeights(engine, outside.w, f.weights_desc(), backward);
}

std::unique_ptr<Conv2d> create_cpu(Context& ctx, const Conv2dShape& shape) {
  // primitives are created for a fixed number of threads
  ctx.bind_thread();
  const bool dense = suits_dense_conv2d(shape);
  if (!dense && suits_winograd_conv2d(shape)) return create_winograd_conv2d(ctx, shape);
  if (needs_widening(shape.dtype)) return create_widened_conv2d(ctx, shape);
  if (dense) return create_dense_conv2d(ctx, shape);
  return std::make_unique<Conv2dCpu>(ctx, shape);
}

const bool conv2d_registered = conv2d_dispatch.add(Device::cpu, create_cpu);

}  // namespace
}  // namespace tw::ops
