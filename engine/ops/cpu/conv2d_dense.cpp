// Convolution of tiny images as a dense matrix: W[(p,q,o), (h,w,i)] = w[o,r,s,i], where the tap
// (r,s) leads from input pixel (h,w) to output pixel (p,q). NHWC rows need no rearrangement.
#include "engine/core/parallel.h"
#include "engine/onednn/onednn.h"
#include "engine/ops/cpu/conv2d.h"
#include "engine/ops/element.h"

#define TW_KERNELS "engine/ops/cpu/conv2d_dense.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::ops::TW_CPU {

template <class T>
void round_row(const float* from, T* to, size_t n) {
  for (size_t i = 0; i < n; ++i) store(to[i], from[i]);
}

template <class T>
void add_row(const T* from, float* to, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] += load(from[i]);
}

}  // namespace tw::ops::TW_CPU
#else
namespace tw::ops {
namespace {

using namespace onednn;

class DenseConv2d final : public Conv2d {
 public:
  DenseConv2d(Context& ctx, const Conv2dShape& shape);

  size_t scratch_bytes() const override {
    return std::max({forward_.scratch_bytes() + bias_elements() * sizeof(float),
                     backward_data_.scratch_bytes(),
                     products_.scratch_bytes() + matrix_elements() * sizeof(float)});
  }
  size_t packed_bytes() const override { return matrix_elements() * size_of(shape_.dtype); }

  void pack(Context& ctx, const Tensor& w, const Tensor& packed, Transfers&) override {
    if (shape_.dtype == DType::bf16)
      expand(ctx, static_cast<const float*>(w.data), static_cast<bf16*>(packed.data));
    else
      expand(ctx, static_cast<const float*>(w.data), static_cast<float*>(packed.data));
  }

  void forward(Context& ctx, const Tensor& x, const Tensor& packed, const Tensor& bias,
               const Tensor& y) override {
    expect("x", x, shape_.x());
    expect("y", y, shape_.y());
    if (!shape_.bias) return forward_.run(ctx, {x.data, packed.data}, {y.data});
    auto* rows = reinterpret_cast<float*>(ctx.scratch().data() + forward_.scratch_bytes());
    const auto* of_channel = static_cast<const float*>(bias.data);
    for (size_t i = 0; i < bias_elements(); i += unsigned_of(shape_.out_channels))
      std::copy_n(of_channel, shape_.out_channels, rows + i);
    forward_.run(ctx, {x.data, packed.data, rows}, {y.data});
  }

  void backward_data(Context& ctx, const Tensor& dy, const Tensor& packed,
                     const Tensor& dx) override {
    check<std::logic_error>(shape_.input_gradient, "[conv2d] made without an input gradient");
    expect("dy", dy, shape_.y());
    expect("dx", dx, shape_.x());
    backward_data_.run(ctx, {dy.data, packed.data}, {dx.data});
  }

  void backward_weights(Context& ctx, const Tensor& x, const Tensor& dy, const Tensor& dw,
                        const Tensor& dbias, bool accumulate, const Tensor&, const Tensor&,
                        Transfers*) override {
    expect("x", x, shape_.x());
    expect("dy", dy, shape_.y());
    if (shape_.bias) sum_bias(ctx, dy, static_cast<float*>(dbias.data), accumulate);
    auto* products = reinterpret_cast<float*>(ctx.scratch().data() + products_.scratch_bytes());
    products_.run(ctx, {dy.data, x.data}, {products});
    fold(ctx, products, static_cast<float*>(dw.data), accumulate);
  }

 private:
  size_t inputs() const { return static_cast<size_t>(shape_.height * shape_.width); }
  size_t outputs() const { return static_cast<size_t>(shape_.out_height() * shape_.out_width()); }
  size_t matrix_elements() const {
    return inputs() * outputs() * static_cast<size_t>(shape_.in_channels * shape_.out_channels);
  }

  /// The bias of each output pixel and channel; 0 without a bias.
  size_t bias_elements() const {
    return shape_.bias ? outputs() * unsigned_of(shape_.out_channels) : 0;
  }

  /// The gradient of the bias is the sum of dy over all pixels.
  void sum_bias(Context& ctx, const Tensor& dy, float* dbias, bool accumulate) const;
  /// Fills the matrix from the kernel.
  template <class T>
  void expand(Context& ctx, const float* w, T* matrix) const;
  /// The gradient of a tap is the sum over all matrix elements that hold it.
  void fold(Context& ctx, const float* matrix, float* dw, bool accumulate) const;

  std::vector<int64_t> taps_;  // [output pixel][input pixel]; negative: not connected
  Kernel forward_, backward_data_, products_;
};

DenseConv2d::DenseConv2d(Context& ctx, const Conv2dShape& s) : Conv2d(s) {
  const auto reaches = [&](int64_t tap) { return tap >= 0 && tap < s.kernel; };
  for (int64_t p = 0; p < s.out_height(); ++p)
    for (int64_t q = 0; q < s.out_width(); ++q)
      for (int64_t h = 0; h < s.height; ++h)
        for (int64_t w = 0; w < s.width; ++w) {
          const int64_t r = h - p * s.stride + s.padding, t = w - q * s.stride + s.padding;
          taps_.push_back(reaches(r) && reaches(t) ? r * s.kernel + t : -1);
        }

  const dnnl::engine& engine = ctx.handles<CpuHandles>().engine;
  const auto in = static_cast<int64_t>(inputs()) * s.in_channels;
  const auto out = static_cast<int64_t>(outputs()) * s.out_channels;
  const Type t = type(s.dtype);
  const Desc x({s.batch, in}, t, Tag::ab), y({s.batch, out}, t, Tag::ab);
  const auto product = [&](const Desc& a, const Desc& b, const Desc& c) {
    const dnnl::matmul::primitive_desc desc({a, b, c}, user_scratchpad(), engine);
    return Kernel(engine, desc, {{DNNL_ARG_SRC, a, a}, {DNNL_ARG_WEIGHTS, b, b}},
                  {{DNNL_ARG_DST, c, c}});
  };
  const Desc w({in, out}, t, Tag::ba), bias({1, out}, Type::f32, Tag::ab);
  if (s.bias) {
    const dnnl::matmul::primitive_desc desc({x, w, bias, y}, user_scratchpad(), engine);
    forward_ = Kernel(engine, desc,
                      {{DNNL_ARG_SRC, x, x}, {DNNL_ARG_WEIGHTS, w, w}, {DNNL_ARG_BIAS, bias, bias}},
                      {{DNNL_ARG_DST, y, y}});
  } else {
    forward_ = product(x, w, y);
  }
  if (s.input_gradient) backward_data_ = product(y, {{out, in}, t, Tag::ab}, x);
  products_ = product({{out, s.batch}, t, Tag::ba}, x, {{out, in}, Type::f32, Tag::ab});
}

void DenseConv2d::sum_bias(Context& ctx, const Tensor& dy, float* dbias, bool accumulate) const {
  const size_t channels = unsigned_of(shape_.out_channels);
  const size_t rows = unsigned_of(shape_.batch) * outputs();
  with_activation_type(shape_.dtype, [&]<class T>() {
    const auto* from = static_cast<const T*>(dy.data);
    parallel_for(ctx, channels, 64, [&](size_t begin, size_t end) {
      if (!accumulate) std::fill(dbias + begin, dbias + end, 0.0f);
      for (size_t row = 0; row < rows; ++row)
        TW_KERNEL(add_row, from + row * channels + begin, dbias + begin, end - begin);
    });
  });
}

template <class T>
void DenseConv2d::expand(Context& ctx, const float* w, T* matrix) const {
  const auto channels = static_cast<size_t>(shape_.in_channels);
  const auto rows = static_cast<size_t>(shape_.out_channels);
  const auto kernel = static_cast<size_t>(shape_.kernel * shape_.kernel);
  parallel_for(ctx, outputs() * rows, 16, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row)
      for (size_t pixel = 0; pixel < inputs(); ++pixel) {
        const int64_t tap = taps_[row / rows * inputs() + pixel];
        T* const to = matrix + (row * inputs() + pixel) * channels;
        if (tap < 0)
          std::fill_n(to, channels, T{});
        else
          TW_KERNEL(round_row, w + (row % rows * kernel + static_cast<size_t>(tap)) * channels, to,
                    channels);
      }
  });
}

void DenseConv2d::fold(Context& ctx, const float* matrix, float* dw, bool accumulate) const {
  const auto channels = static_cast<size_t>(shape_.in_channels);
  const auto rows = static_cast<size_t>(shape_.out_channels);
  const auto kernel = static_cast<size_t>(shape_.kernel * shape_.kernel);
  parallel_for(ctx, rows, 8, [&](size_t begin, size_t end) {
    if (!accumulate) std::fill(dw + begin * kernel * channels, dw + end * kernel * channels, 0.0f);
    for (size_t o = begin; o < end; ++o)
      for (size_t pair = 0; pair < taps_.size(); ++pair) {
        if (taps_[pair] < 0) continue;
        const size_t block = (pair / inputs() * rows + o) * inputs() + pair % inputs();
        TW_KERNEL(add_row, matrix + block * channels,
                  dw + (o * kernel + static_cast<size_t>(taps_[pair])) * channels, channels);
      }
  });
}

}  // namespace

bool suits_dense_conv2d(const Conv2dShape& s) {
  // the matrix multiplies each output pixel with all input pixels, the kernel with all its taps
  return 2 * s.height * s.width <= s.kernel * s.kernel;
}

std::unique_ptr<Conv2d> create_dense_conv2d(Context& ctx, const Conv2dShape& shape) {
  return std::make_unique<DenseConv2d>(ctx, shape);
}

}  // namespace tw::ops
#endif
