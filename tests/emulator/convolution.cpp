#include "tests/emulator/convolution.h"

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
  void write(const Image& image) {
    for_each(image, [&](float value, int64_t i) { store(image.data, image.dtype, i, value); });
  }
};

}  // namespace

void Convolution::run() const {
  Floats in(x), filter(w), out(y);
  if (pass != ConvolutionPass::backward_data || accumulate) in.read(x);
  if (pass != ConvolutionPass::backward_filter || accumulate) filter.read(w);
  if (pass != ConvolutionPass::forward || accumulate) out.read(y);
  const int64_t channels = x.dims[1];
  for (int64_t n = 0; n < y.dims[0]; ++n)
    for (int64_t oh = 0; oh < y.dims[2]; ++oh)
      for (int64_t ow = 0; ow < y.dims[3]; ++ow)
        for (int64_t fh = 0; fh < w.dims[2]; ++fh)
          for (int64_t fw = 0; fw < w.dims[3]; ++fw) {
            const int64_t h = oh * stride + fh - padding, v = ow * stride + fw - padding;
            if (h < 0 || h >= x.dims[2] || v < 0 || v >= x.dims[3]) continue;
            float* const at_x = in.pixel(n, h, v);
            for (int64_t o = 0; o < w.dims[0]; ++o) {
              float* const at_w = filter.pixel(o, fh, fw);
              float& at_y = out.pixel(n, oh, ow)[o];
              if (pass == ConvolutionPass::forward) {
                float sum = 0;
#pragma omp simd reduction(+ : sum)
                for (int64_t c = 0; c < channels; ++c) sum += at_x[c] * at_w[c];
                at_y += sum;
              } else if (pass == ConvolutionPass::backward_data) {
                for (int64_t c = 0; c < channels; ++c) at_x[c] += at_y * at_w[c];
              } else {
                for (int64_t c = 0; c < channels; ++c) at_w[c] += at_y * at_x[c];
              }
            }
          }
  if (pass == ConvolutionPass::forward) out.write(y);
  if (pass == ConvolutionPass::backward_data) in.write(x);
  if (pass == ConvolutionPass::backward_filter) filter.write(w);
}

}  // namespace tw::emulator
