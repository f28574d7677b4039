// Choice of oneDNN's convolution for a pass.
#include "engine/core/cpu_features.h"
#include "engine/ops/cpu/conv2d.h"

namespace tw::ops {
namespace {

using namespace onednn;
using dnnl::algorithm;

/// Implementation of one pass.
struct Choice {
  algorithm algo;
  Type type;
  Tag layout;
};

/// The tensors under a choice; oneDNN may pick the layouts left open.
struct Inside {
  Desc x, y, w, dw, bias;
  dnnl::memory::dims stride, padding_front, padding_back;
};

Inside describe(const Conv2dShape& s, const Choice& c) {
  // exact, so that no implementation sees padding it would not read
  const auto back = [&](int64_t in, int64_t out) {
    return std::max<int64_t>(0, (out - 1) * s.stride + s.kernel - in - s.padding);
  };
  const ConvOutside outside(s);
  return {.x = {outside.x.dims(), c.type, c.layout},
          .y = {outside.y.dims(), c.type, c.layout},
          .w = {outside.w.dims(), c.type, Tag::any},
          .dw = {outside.w.dims(), Type::f32, Tag::any},
          .bias = outside.bias,
          .stride = {s.stride, s.stride},
          .padding_front = {s.padding, s.padding},
          .padding_back = {back(s.height, s.out_height()), back(s.width, s.out_width())}};
}

ConvForward forward_desc(const dnnl::engine& engine, const Conv2dShape& s, const Choice& c) {
  const Inside d = describe(s, c);
  return {{dnnl::prop_kind::forward_training, c.algo, d.x, d.w, d.bias, d.y, d.stride,
           d.padding_front, d.padding_back},
          user_scratchpad(),
          engine};
}

/// Winograd's F(4x4,3x3) (Lavin and Gray, CVPR 2016) for the shapes that conv2d_winograd leaves:
/// other channels, few tiles. oneDNN has it in fp32 only, in a blocked layout: it pays where the
/// products outweigh the reorders. Its error stays within a few times that of the direct sum.
bool winograd_pays(const Conv2dShape& s, bool gradient_of_weights) {
  if (s.kernel != 3 || s.stride != 1) return false;
  const int64_t side = std::min(s.height, s.width);
  const auto [narrow, wide] = std::minmax(s.in_channels, s.out_channels);
  if (s.dtype == DType::f32) return narrow >= 32 && side >= 4;
  // bf16 products are twice as fast without AMX, and far beyond Winograd's gain with it
  if (cpu_has_amx() || narrow < 64 || side > 16) return false;
  return gradient_of_weights ? side >= 4 : wide >= 128 && side >= 8;
}

/// The first choice that oneDNN implements on this CPU. The order depends on the shape alone, not
/// on timing: same shape, same bits.
template <class Make>
auto first_possible(const Conv2dShape& s, bool gradient_of_weights, const Make& make) {
  std::vector<Choice> choices{{algorithm::convolution_direct, type(s.dtype), Tag::nhwc},
                              {algorithm::convolution_direct, type(s.dtype), Tag::any}};
  if (winograd_pays(s, gradient_of_weights))
    choices.insert(choices.begin(), {algorithm::convolution_winograd, Type::f32, Tag::any});
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

}  // namespace

ConvOutside::ConvOutside(const Conv2dShape& s)
    : x({s.batch, s.in_channels, s.height, s.width}, type(s.dtype), Tag::nhwc),
      y({s.batch, s.out_channels, s.out_height(), s.out_width()}, type(s.dtype), Tag::nhwc),
      w({s.out_channels, s.in_channels, s.kernel, s.kernel}, Type::f32, Tag::ohwi),
      bias(s.bias ? Desc({s.out_channels}, Type::f32, Tag::a) : Desc()) {}

ConvForward choose_forward(const dnnl::engine& engine, const Conv2dShape& s) {
  return first_possible(s, false, [&](const Choice& c) { return forward_desc(engine, s, c); });
}

ConvBackwardData choose_backward_data(const dnnl::engine& engine, const Conv2dShape& s) {
  return first_possible(s, false, [&](const Choice& c) -> ConvBackwardData {
    const Inside d = describe(s, c);
    return {{c.algo, d.x, d.w, d.y, d.stride, d.padding_front, d.padding_back},
            user_scratchpad(),
            engine,
            forward_desc(engine, s, c)};
  });
}

ConvBackwardWeights choose_backward_weights(const dnnl::engine& engine, const Conv2dShape& s) {
  return first_possible(s, true, [&](const Choice& c) {
    const Inside d = describe(s, c);
    const ConvForward forward = forward_desc(engine, s, c);  // next_impl() reads it and op again
    const dnnl::convolution_backward_weights::desc op(c.algo, d.x, d.dw, d.bias, d.y, d.stride,
                                                      d.padding_front, d.padding_back);
    ConvBackwardWeights desc(op, user_scratchpad(), engine, forward);
    leave_faulty_kernel(desc, s.stride);
    return desc;
  });
}

bool splits_batch(const Conv2dShape& s, int threads) {
  // oneDNN's bf16 kernel synchronises its threads at every image; partial sums cost little when
  // they are small compared with the activations
  return s.dtype == DType::bf16 && !winograd_pays(s, true) && threads > 1 && s.batch >= threads &&
         s.w().numel() * threads <= s.x().numel();
}

}  // namespace tw::ops
