#include "tests/emulator/convolution.h"

#include <dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "tests/emulator/element.h"

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

/// The f32 filter [o, h, w, i] in the layout that the primitive wants, and back.
void reorder(dnnl::stream& stream, memory from, memory to) {
  dnnl::reorder(from, to).execute(stream, from, to);
}

}  // namespace

void Convolution::run() const {
  Floats in(x), filter(w), out(y);
  if (pass != ConvolutionPass::backward_data) in.read(x);
  if (pass != ConvolutionPass::backward_filter) filter.read(w);
  if (pass != ConvolutionPass::forward) out.read(y);

  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto desc = [](const Image& image, memory::format_tag format) {
    return memory::desc({image.dims.begin(), image.dims.end()}, memory::data_type::f32, format);
  };
  const memory::desc x_desc = desc(x, memory::format_tag::nhwc),
                     w_desc = desc(w, memory::format_tag::ohwi),
                     y_desc = desc(y, memory::format_tag::nhwc),
                     any = desc(w, memory::format_tag::any);
  // what lies behind the last window is padding, or is left out
  memory::dims strides{stride, stride}, before{padding, padding}, behind(2);
  for (size_t d = 0; d < 2; ++d)
    behind[d] = (y.dims[d + 2] - 1) * stride + w.dims[d + 2] - x.dims[d + 2] - padding;

  memory x_memory(x_desc, engine, in.values.data()), w_memory(w_desc, engine, filter.values.data()),
      y_memory(y_desc, engine, out.values.data());
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, x_desc, any, y_desc,
       strides, before, behind},
      engine);
  const auto run = [&](const auto& primitive, memory::desc packed_desc, auto arguments) {
    memory packed(packed_desc, engine);
    if (pass != ConvolutionPass::backward_filter) reorder(stream, w_memory, packed);
    primitive.execute(stream, arguments(packed));
    if (pass == ConvolutionPass::backward_filter) reorder(stream, packed, w_memory);
    stream.wait();
  };
  using Arguments = std::unordered_map<int, memory>;
  if (pass == ConvolutionPass::forward) {
    run(dnnl::convolution_forward(forward), forward.weights_desc(), [&](const memory& packed) {
      return Arguments{
          {DNNL_ARG_SRC, x_memory}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_DST, y_memory}};
    });
    out.write(y, accumulate);
  } else if (pass == ConvolutionPass::backward_data) {
    const dnnl::convolution_backward_data::primitive_desc backward(
        {dnnl::algorithm::convolution_direct, x_desc, any, y_desc, strides, before, behind}, engine,
        forward);
    run(dnnl::convolution_backward_data(backward), backward.weights_desc(),
        [&](const memory& packed) {
          return Arguments{{DNNL_ARG_DIFF_SRC, x_memory},
                           {DNNL_ARG_WEIGHTS, packed},
                           {DNNL_ARG_DIFF_DST, y_memory}};
        });
    in.write(x, accumulate);
  } else {
    const dnnl::convolution_backward_weights::primitive_desc backward(
        {dnnl::algorithm::convolution_direct, x_desc, any, y_desc, strides, before, behind}, engine,
        forward);
    run(dnnl::convolution_backward_weights(backward), backward.diff_weights_desc(),
        [&](const memory& packed) {
          return Arguments{{DNNL_ARG_SRC, x_memory},
                           {DNNL_ARG_DIFF_DST, y_memory},
                           {DNNL_ARG_DIFF_WEIGHTS, packed}};
        });
    filter.write(w, accumulate);
  }
}

}  // namespace tw::emulator
