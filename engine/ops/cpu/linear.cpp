// CPU linear on oneDNN's inner product. The products run in x's dtype; a dy of another dtype is
// converted in scratch.
#include "engine/ops/linear.h"

#include "engine/onednn/onednn.h"
#include "engine/ops/cpu/widened.h"

namespace tw::ops {
namespace {

using namespace onednn;
using Forward = dnnl::inner_product_forward;
using BackwardData = dnnl::inner_product_backward_data;
using BackwardWeights = dnnl::inner_product_backward_weights;

class LinearCpu final : public Linear {
 public:
  LinearCpu(Context& ctx, const LinearShape& shape);

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
    expect("x", x, shape_.in_features, shape_.dtype);
    expect("y", y, shape_.out_features, shape_.out_dtype);
    forward_.run(ctx, {x.data, weights_.for_forward(packed), bias.data}, {y.data});
  }

  void backward_data(Context& ctx, const Tensor& dy, const Tensor& packed, const Tensor& dx,
                     const Tensor&) override {
    check<std::logic_error>(shape_.input_gradient, "[linear] made without an input gradient");
    expect("dy", dy, shape_.out_features, shape_.out_dtype);
    expect("dx", dx, shape_.in_features, shape_.dtype);
    backward_data_.run(ctx, {dy.data, weights_.for_backward(packed)}, {dx.data});
  }

  void backward_weights(Context& ctx, const Tensor& x, const Tensor& dy, const Tensor& dw,
                        const Tensor& dbias, bool accumulate, const Tensor&) override {
    expect("x", x, shape_.in_features, shape_.dtype);
    expect("dy", dy, shape_.out_features, shape_.out_dtype);
    backward_weights_.run(ctx, {x.data, dy.data}, {dw.data, dbias.data}, accumulate);
  }

 private:
  PackedWeights weights_;
  Kernel forward_, backward_data_, backward_weights_;
};

LinearCpu::LinearCpu(Context& ctx, const LinearShape& s) : Linear(s) {
  const dnnl::engine& engine = ctx.handles<CpuHandles>().engine;
  const Type inside = type(s.dtype), outside = type(s.out_dtype);
  const Desc x({s.batch, s.in_features}, inside, Tag::ab);
  const Desc y({s.batch, s.out_features}, outside, Tag::ab);
  const Desc dy({s.batch, s.out_features}, inside, Tag::ab);
  const Desc w({s.out_features, s.in_features}, inside, Tag::any);
  const Desc master({s.out_features, s.in_features}, Type::f32, Tag::ab);
  const Desc dw({s.out_features, s.in_features}, Type::f32, Tag::any);
  const Desc bias({s.out_features}, Type::f32, Tag::a);

  const Forward::primitive_desc f({dnnl::prop_kind::forward_training, x, w, bias, y},
                                  user_scratchpad(), engine);
  forward_ = Kernel(engine, f,
                    {{DNNL_ARG_SRC, x, x},
                     {DNNL_ARG_WEIGHTS, f.weights_desc(), f.weights_desc()},
                     {DNNL_ARG_BIAS, bias, bias}},
                    {{DNNL_ARG_DST, y, y}});

  const BackwardWeights::primitive_desc g({x, dw, bias, dy}, user_scratchpad(), engine, f);
  backward_weights_ = Kernel(
      engine, g, {{DNNL_ARG_SRC, x, x}, {DNNL_ARG_DIFF_DST, y, dy}},
      {{DNNL_ARG_DIFF_WEIGHTS, master, g.diff_weights_desc()}, {DNNL_ARG_DIFF_BIAS, bias, bias}},
      true);

  if (!s.input_gradient) {
    weights_ = PackedWeights(engine, master, f.weights_desc(), Desc{});
    return;
  }
  const BackwardData::primitive_desc b({x, w, dy}, user_scratchpad(), engine, f);
  backward_data_ =
      Kernel(engine, b,
             {{DNNL_ARG_DIFF_DST, y, dy}, {DNNL_ARG_WEIGHTS, b.weights_desc(), b.weights_desc()}},
             {{DNNL_ARG_DIFF_SRC, x, x}});
  weights_ = PackedWeights(engine, master, f.weights_desc(), b.weights_desc());
}

std::unique_ptr<Linear> create_cpu(Context& ctx, const LinearShape& shape) {
  // primitives are created for a fixed number of threads
  ctx.bind_thread();
  if (needs_widening(shape.dtype)) return create_widened_linear(ctx, shape);
  return std::make_unique<LinearCpu>(ctx, shape);
}

const bool linear_registered = linear_dispatch.add(Device::cpu, create_cpu);

}  // namespace
}  // namespace tw::ops
