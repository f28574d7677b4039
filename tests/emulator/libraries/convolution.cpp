#include "tests/emulator/libraries/convolution.h"

#include <bit>
#include <dnnl.hpp>
#include <vector>

#include "engine/ops/cpu/conv2d.h"
#include "tests/emulator/libraries/element.h"

namespace tw::emulator {

namespace {

/// A copy of an image as floats, NHWC.
struct Floats {
  std::array<int64_t, 4> dims;
  std::vector<float> values;

  explicit Floats(const Image& shape)
      : dims(shape.dims), values(static_cast<size_t>(dims[0] * dims[1] * dims[2] * dims[3])) {}

  /// The channels of a pixel.
  float* pixel(int64_t n, int64_t h, int64_t w) {
    return &values[static_cast<size_t>(((n * dims[2] + h) * dims[3] + w) * dims[1])];
  }

  /// Calls body(value, index in `image`) for each element.
  template <class Body>
  void for_each(const Image& image, const Body& body) {
    for (int64_t n = 0; n < dims[0]; ++n)
      for (int64_t h = 0; h < dims[2]; ++h)
        for (int64_t w = 0; w < dims[3]; ++w)
          for (int64_t c = 0; c < dims[1]; ++c) body(pixel(n, h, w)[c], image.at(n, c, h, w));
  }
  void read(const Image& image) {
    for_each(image, [&](float& value, int64_t i) { value = load(image.data, image.dtype, i); });
  }
  /// Adds the values to the image, or replaces its elements.
  void write(const Image& image, bool add) {
    for_each(image, [&](float value, int64_t i) {
      const float old = add ? load(image.data, image.dtype, i) : 0.0f;
      store(image.data, image.dtype, i, add ? old + value : value);
    });
  }
};

using dnnl::memory;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

/// A primitive, the layout that it wants for the filter, and oneDNN's names of the three tensors.
struct Primitive {
  dnnl::primitive primitive;
  memory::desc filter;
  int x, w, y;
};

Primitive make_primitive(ConvolutionPass pass, const memory::desc& x, const memory::desc& w,
                         const memory::desc& y, const memory::dims& strides,
                         const memory::dims& before, const memory::dims& behind) {
  using dnnl::convolution_backward_data, dnnl::convolution_backward_weights,
      dnnl::convolution_forward;
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  const convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, kDirect, x, w, y, strides, before, behind}, engine());
  if (pass == ConvolutionPass::forward)
    return {convolution_forward(forward), forward.weights_desc(), DNNL_ARG_SRC, DNNL_ARG_WEIGHTS,
            DNNL_ARG_DST};
  if (pass == ConvolutionPass::backward_data) {
    const convolution_backward_data::primitive_desc backward(
        {kDirect, x, w, y, strides, before, behind}, engine(), forward);
    return {convolution_backward_data(backward), backward.weights_desc(), DNNL_ARG_DIFF_SRC,
            DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST};
  }
  // next_impl() reads it again
  const convolution_backward_weights::desc op(kDirect, x, w, y, strides, before, behind);
  convolution_backward_weights::primitive_desc backward(op, engine(), forward);
  ops::leave_faulty_kernel(backward, strides.front());
  return {convolution_backward_weights(backward), backward.diff_weights_desc(), DNNL_ARG_SRC,
          DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST};
}

}  // namespace

void Convolution::run() const {
  const bool writes_x = pass == ConvolutionPass::backward_data,
             writes_w = pass == ConvolutionPass::backward_filter,
             writes_y = pass == ConvolutionPass::forward;
  Floats in(x), filter(w), out(y);
  if (!writes_x) in.read(x);
  if (!writes_w) filter.read(w);
  if (!writes_y) out.read(y);
  if (rounds)
    for (Floats* operand : {&in, &filter, &out})
      for (float& value : operand->values)
        value = std::bit_cast<float>((std::bit_cast<uint32_t>(value) + 0x1000u) & ~0x1fffu);

  const auto desc = [](const Image& image, memory::format_tag format) {
    return memory::desc({image.dims.begin(), image.dims.end()}, memory::data_type::f32, format);
  };
  const memory::desc x_desc = desc(x, memory::format_tag::nhwc),
                     y_desc = desc(y, memory::format_tag::nhwc);
  // what lies behind the last window is padding, or is left out
  memory::dims strides{stride, stride}, before{padding, padding}, behind(2);
  for (size_t d = 0; d < 2; ++d)
    behind[d] = (y.dims[d + 2] - 1) * stride + w.dims[d + 2] - x.dims[d + 2] - padding;
  const Primitive convolution = make_primitive(pass, x_desc, desc(w, memory::format_tag::any),
                                               y_desc, strides, before, behind);

  memory plain(desc(w, memory::format_tag::ohwi), engine(), filter.values.data()),
      packed(convolution.filter, engine());
  dnnl::stream stream(engine());
  const auto reorder = [&](memory& from, memory& to) {
    dnnl::reorder(from, to).execute(stream, from, to);
  };
  if (!writes_w) reorder(plain, packed);
  convolution.primitive.execute(stream, {{convolution.x, {x_desc, engine(), in.values.data()}},
                                         {convolution.w, packed},
                                         {convolution.y, {y_desc, engine(), out.values.data()}}});
  if (writes_w) reorder(packed, plain);
  stream.wait();

  if (writes_x) in.write(x, accumulate);
  if (writes_w) filter.write(w, accumulate);
  if (writes_y) out.write(y, accumulate);
}

}  // namespace tw::emulator
