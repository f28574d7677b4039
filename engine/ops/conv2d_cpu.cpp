// CPU convolution on oneDNN. Outside everything is NHWC; inside each pass has the algorithm, layout
// and type that is fastest for its shape.
#include "engine/ops/conv2d_cpu.h"

#include "engine/cpu_features.h"
#include "engine/onednn.h"

namespace tw::ops {
namespace {

using namespace onednn;
using dnnl::algorithm, dnnl::prop_kind;

/// How one pass is computed inside.
struct Choice {
  algorithm algo;
  Type type;
  Tag layout;
};

/// Descriptions of the five tensors under a choice.
struct Descs {
  Desc x, y, w, dw, bias;
  dnnl::memory::dims stride, padding_front, padding_back;
};

Descs describe(const Conv2dShape& s, const Choice& c) {
  // exact, so that no implementation sees padding it would not read
  const auto back = [&](int64_t in, int64_t out) {
    return std::max<int64_t>(0, (out - 1) * s.stride + s.kernel - in - s.padding);
  };
  const dnnl::memory::dims w{s.out_channels, s.in_channels, s.kernel, s.kernel};
  return {.x = {{s.batch, s.in_channels, s.height, s.width}, c.type, c.layout},
          .y = {{s.batch, s.out_channels, s.out_height(), s.out_width()}, c.type, c.layout},
          .w = {w, c.type, Tag::any},
          .dw = {w, Type::f32, Tag::any},
          .bias = s.bias ? Desc{{s.out_channels}, Type::f32, Tag::a} : Desc{},
          .stride = {s.stride, s.stride},
          .padding_front = {s.padding, s.padding},
          .padding_back = {back(s.height, s.out_height()), back(s.width, s.out_width())}};
}

using Forward = dnnl::convolution_forward::primitive_desc;
using BackwardData = dnnl::convolution_backward_data::primitive_desc;
using BackwardWeights = dnnl::convolution_backward_weights::primitive_desc;

Forward forward_desc(const dnnl::engine& engine, const Conv2dShape& s, const Choice& c) {
  const Descs d = describe(s, c);
  return {{prop_kind::forward_training, c.algo, d.x, d.w, d.bias, d.y, d.stride, d.padding_front,
           d.padding_back},
          user_scratchpad(),
          engine};
}

BackwardData backward_data_desc(const dnnl::engine& engine, const Conv2dShape& s, const Choice& c) {
  const Descs d = describe(s, c);
  return {{c.algo, d.x, d.w, d.y, d.stride, d.padding_front, d.padding_back},
          user_scratchpad(),
          engine,
          forward_desc(engine, s, c)};
}

BackwardWeights backward_weights_desc(const dnnl::engine& engine, const Conv2dShape& s,
                                      const Choice& c) {
  const Descs d = describe(s, c);
  return {{c.algo, d.x, d.dw, d.bias, d.y, d.stride, d.padding_front, d.padding_back},
          user_scratchpad(),
          engine,
          forward_desc(engine, s, c)};
}

/// The first choice oneDNN has an implementation for on this CPU.
template <class Make>
auto first_possible(const Conv2dShape& s, const std::vector<Choice>& choices, const Make& make) {
  for (const Choice& choice : choices) {
    try {
      return make(choice);
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
    }
  }
  fail("[conv2d] this CPU has no {} convolution of {} by {} channels", name(s.dtype), s.in_channels,
       s.out_channels);
}

/// Winograd's F(4x4,3x3) (Lavin and Gray, CVPR 2016) multiplies 4 times less and exists in fp32
/// only, in a blocked layout: it pays where the products outweigh the reorders. Its error stays
/// within a few times that of the direct sum.
bool winograd_pays(const Conv2dShape& s, bool gradient_of_weights) {
  if (s.kernel != 3 || s.stride != 1) return false;
  const int64_t side = std::min(s.height, s.width);
  const auto [narrow, wide] = std::minmax(s.in_channels, s.out_channels);
  if (s.dtype == DType::f32) return narrow >= 32 && side >= 4;
  // bf16 products are twice as fast without AMX, and far beyond Winograd's gain with it
  if (cpu_has_amx() || narrow < 64 || side > 16) return false;
  return gradient_of_weights ? side >= 4 : wide >= 128 && side >= 8;
}

/// What to try, the fastest first. Chosen by shape, never by a stopwatch: same shape, same bits.
std::vector<Choice> choices(const Conv2dShape& s, bool gradient_of_weights) {
  std::vector<Choice> result;
  if (winograd_pays(s, gradient_of_weights))
    result.push_back({algorithm::convolution_winograd, Type::f32, Tag::any});
  result.push_back({algorithm::convolution_direct, type(s.dtype), Tag::nhwc});
  result.push_back({algorithm::convolution_direct, type(s.dtype), Tag::any});
  return result;
}

class Conv2dCpu final : public Conv2d {
 public:
  Conv2dCpu(Context& ctx, const Conv2dShape& shape);

  size_t scratch_bytes() const override {
    return std::max({weights_.scratch_bytes(), forward_.scratch_bytes(),
                     backward_data_.scratch_bytes(), backward_weights_.scratch_bytes()});
  }
  size_t packed_bytes() const override { return weights_.bytes(); }

  void pack(Context& ctx, const Tensor& w, const Tensor& packed) override {
    weights_.pack(ctx, w, packed);
  }

  void forward(Context& ctx, const Tensor& x, const Tensor& packed, const Tensor& bias,
               const Tensor& y) override {
    expect_conv2d_tensor("x", x, shape_.x(), shape_.dtype);
    expect_conv2d_tensor("y", y, shape_.y(), shape_.dtype);
    if (shape_.bias)
      forward_.run(ctx, {x.data, weights_.for_forward(packed), bias.data}, {y.data});
    else
      forward_.run(ctx, {x.data, weights_.for_forward(packed)}, {y.data});
  }

  void backward_data(Context& ctx, const Tensor& dy, const Tensor& packed,
                     const Tensor& dx) override {
    check<std::logic_error>(shape_.input_gradient, "[conv2d] made without an input gradient");
    expect_conv2d_tensor("dy", dy, shape_.y(), shape_.dtype);
    expect_conv2d_tensor("dx", dx, shape_.x(), shape_.dtype);
    backward_data_.run(ctx, {dy.data, weights_.for_backward(packed)}, {dx.data});
  }

  void backward_weights(Context& ctx, const Tensor& x, const Tensor& dy, const Tensor& dw,
                        const Tensor& dbias, bool accumulate) override {
    expect_conv2d_tensor("x", x, shape_.x(), shape_.dtype);
    expect_conv2d_tensor("dy", dy, shape_.y(), shape_.dtype);
    if (shape_.bias)
      backward_weights_.run(ctx, {x.data, dy.data}, {dw.data, dbias.data}, accumulate);
    else
      backward_weights_.run(ctx, {x.data, dy.data}, {dw.data}, accumulate);
  }

 private:
  Conv2dShape shape_;
  PackedWeights weights_;
  Kernel forward_, backward_data_, backward_weights_;
};

Conv2dCpu::Conv2dCpu(Context& ctx, const Conv2dShape& s) : shape_(s) {
  const dnnl::engine& engine = ctx.native<CpuNative>().engine;
  const Descs outside = describe(s, {algorithm::convolution_direct, type(s.dtype), Tag::nhwc});
  const Desc master(outside.w.dims(), Type::f32, Tag::ohwi);

  const Forward f = first_possible(s, choices(s, false),
                                   [&](const Choice& c) { return forward_desc(engine, s, c); });
  std::vector<Operand> inputs{{DNNL_ARG_SRC, outside.x, f.src_desc()},
                              {DNNL_ARG_WEIGHTS, f.weights_desc(), f.weights_desc()}};
  if (s.bias) inputs.push_back({DNNL_ARG_BIAS, outside.bias, f.bias_desc()});
  forward_ = Kernel(engine, f, inputs, {{DNNL_ARG_DST, outside.y, f.dst_desc()}});

  const BackwardWeights w = first_possible(
      s, choices(s, true), [&](const Choice& c) { return backward_weights_desc(engine, s, c); });
  std::vector<Operand> outputs{{DNNL_ARG_DIFF_WEIGHTS, master, w.diff_weights_desc()}};
  if (s.bias) outputs.push_back({DNNL_ARG_DIFF_BIAS, outside.bias, w.diff_bias_desc()});
  backward_weights_ = Kernel(
      engine, w,
      {{DNNL_ARG_SRC, outside.x, w.src_desc()}, {DNNL_ARG_DIFF_DST, outside.y, w.diff_dst_desc()}},
      outputs, true);

  if (!s.input_gradient) {
    weights_ = PackedWeights(engine, master, f.weights_desc(), Desc{});
    return;
  }
  const BackwardData b = first_possible(
      s, choices(s, false), [&](const Choice& c) { return backward_data_desc(engine, s, c); });
  backward_data_ = Kernel(engine, b,
                          {{DNNL_ARG_DIFF_DST, outside.y, b.diff_dst_desc()},
                           {DNNL_ARG_WEIGHTS, b.weights_desc(), b.weights_desc()}},
                          {{DNNL_ARG_DIFF_SRC, outside.x, b.diff_src_desc()}});
  weights_ = PackedWeights(engine, master, f.weights_desc(), b.weights_desc());
}

std::unique_ptr<Conv2d> create_cpu(Context& ctx, const Conv2dShape& shape) {
  require("conv2d", shape.dtype);
  // primitives remember the number of threads they were made for
  ctx.bind_thread();
  if (suits_dense_conv2d(shape)) return create_dense_conv2d(ctx, shape);
  return std::make_unique<Conv2dCpu>(ctx, shape);
}

const bool registered = conv2d_bodies.add(Device::cpu, create_cpu);

}  // namespace

void expect_conv2d_tensor(const char* what, const Tensor& tensor, const Shape& shape, DType dtype) {
  if (tensor.shape == shape && tensor.dtype == dtype) [[likely]]
    return;
  fail("[conv2d] {} is {} {}; expected {} {}", what, name(tensor.dtype), tensor.shape.str(),
       name(dtype), shape.str());
}

}  // namespace tw::ops
