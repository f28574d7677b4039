// 3 x 3 convolution with stride 1 by Winograd's F(4x4, 3x3), in fp32. oneDNN 2.6 has it in a
// blocked layout only and transforms all tiles of the batch before it multiplies; here the tiles of
// a group are transformed and multiplied while they are in the caches.
#include "engine/core/cpu_features.h"
#include "engine/core/parallel.h"
#include "engine/ops/cpu/conv2d.h"
#include "engine/ops/cpu/winograd.h"
#include "engine/ops/element.h"

namespace tw::ops {
namespace {

using winograd::kGroup, winograd::kLanes, winograd::kPoints, winograd::Tiling;

Tiling forward_tiling(const Conv2dShape& s) {
  return {.batch = unsigned_of(s.batch),
          .in_height = unsigned_of(s.height),
          .in_width = unsigned_of(s.width),
          .in_channels = unsigned_of(s.in_channels),
          .out_height = unsigned_of(s.out_height()),
          .out_width = unsigned_of(s.out_width()),
          .out_channels = unsigned_of(s.out_channels),
          .padding = unsigned_of(s.padding)};
}

/// The input gradient is a convolution of dy with the kernel turned by 180 degrees.
Tiling backward_tiling(const Tiling& t) {
  return {.batch = t.batch,
          .in_height = t.out_height,
          .in_width = t.out_width,
          .in_channels = t.out_channels,
          .out_height = t.in_height,
          .out_width = t.in_width,
          .out_channels = t.in_channels,
          .padding = 2 - t.padding};
}

/// First item of part i when n items are dealt to `parts`.
size_t share(size_t n, size_t i, size_t parts) { return n * i / parts; }

/// Deals the tiles by kLanes, which are multiplied together, to `parts`; calls body(begin, end)
/// for groups of the tiles of part i.
template <class Body>
void for_each_group(const Tiling& t, size_t i, size_t parts, const Body& body) {
  const size_t steps = (t.tiles() + kLanes - 1) / kLanes;
  const size_t end = std::min(t.tiles(), share(steps, i + 1, parts) * kLanes);
  for (size_t tile = share(steps, i, parts) * kLanes; tile < end; tile += kGroup)
    body(tile, std::min(end, tile + kGroup));
}

class WinogradConv2d final : public Conv2d {
 public:
  WinogradConv2d(Context& ctx, const Conv2dShape& shape);

  size_t scratch_bytes() const override {
    return (threads_ * scratch_floats_ + tile_parts_ * sums_floats()) * sizeof(float);
  }
  size_t packed_bytes() const override {
    return (shape_.input_gradient ? 2 : 1) * forward_.kernel_floats() * sizeof(float);
  }

  void pack(Context& ctx, const Tensor& w, const Tensor& packed, Transfers&) override;

  void forward(Context& ctx, const Tensor& x, const Tensor& packed, const Tensor& bias,
               const Tensor& y) override {
    expect("x", x, shape_.x());
    expect("y", y, shape_.y());
    convolve(ctx, forward_, x, static_cast<const float*>(packed.data),
             shape_.bias ? static_cast<const float*>(bias.data) : nullptr, y);
  }

  void backward_data(Context& ctx, const Tensor& dy, const Tensor& packed,
                     const Tensor& dx) override {
    check<std::logic_error>(shape_.input_gradient, "[conv2d] made without an input gradient");
    expect("dy", dy, shape_.y());
    expect("dx", dx, shape_.x());
    convolve(ctx, backward_, dy, static_cast<const float*>(packed.data) + forward_.kernel_floats(),
             nullptr, dx);
  }

  void backward_weights(Context& ctx, const Tensor& x, const Tensor& dy, const Tensor& dw,
                        const Tensor& dbias, bool accumulate, const Tensor&, const Tensor&,
                        Transfers*) override;

 private:
  void convolve(Context& ctx, const Tiling& t, const Tensor& in, const float* kernel,
                const float* bias, const Tensor& out) const;
  /// Length of the sums of one part of the tiles: those of the kernel, then those of the bias.
  size_t sums_floats() const { return forward_.kernel_floats() + forward_.out_channels; }
  float* scratch(Context& ctx, size_t part) const {
    return reinterpret_cast<float*>(ctx.scratch().data()) + part * scratch_floats_;
  }

  Tiling forward_, backward_;
  size_t threads_, scratch_floats_;
  // The gradient of the weights is computed in tile_parts_ x output_parts_ tasks. Tasks of other
  // tiles have sums of their own; tasks of other outputs transform the same input again.
  size_t tile_parts_, output_parts_;
};

WinogradConv2d::WinogradConv2d(Context& ctx, const Conv2dShape& s)
    : Conv2d(s),
      forward_(forward_tiling(s)),
      backward_(backward_tiling(forward_)),
      threads_(unsigned_of(ctx.threads())),
      scratch_floats_(forward_.scratch_floats()) {  // as many as backward_'s
  // sums of more channels would not stay in the second-level cache
  constexpr size_t kFewChannels = 64;
  const bool wide = forward_.in_channels * forward_.out_channels > kFewChannels * kFewChannels;
  output_parts_ = wide ? std::min(threads_, forward_.out_channels / kLanes) : 1;
  tile_parts_ = threads_ / output_parts_;
}

void WinogradConv2d::pack(Context& ctx, const Tensor& w, const Tensor& packed, Transfers&) {
  const auto* from = static_cast<const float*>(w.data);
  auto* const to = static_cast<float*>(packed.data);
  const size_t inputs = forward_.in_channels, outputs = forward_.out_channels;
  const auto one = static_cast<std::ptrdiff_t>(inputs), kernel = 9 * one;
  parallel_for(ctx, outputs / kLanes, 1, [&](size_t block, size_t) {
    TW_KERNEL(transform_winograd_kernel,
              winograd::KernelView{from + block * kLanes * 9 * inputs, kernel, 1, one}, inputs,
              to + block * kPoints * inputs * kLanes);
  });
  if (!shape_.input_gradient) return;
  parallel_for(ctx, inputs / kLanes, 1, [&](size_t block, size_t) {
    TW_KERNEL(transform_winograd_kernel,
              winograd::KernelView{from + 8 * inputs + block * kLanes, 1, kernel, -one}, outputs,
              to + forward_.kernel_floats() + block * kPoints * outputs * kLanes);
  });
}

void WinogradConv2d::convolve(Context& ctx, const Tiling& t, const Tensor& in, const float* kernel,
                              const float* bias, const Tensor& out) const {
  with_activation_type(shape_.dtype, [&]<class T>() {
    const auto* from = static_cast<const T*>(in.data);
    auto* const to = static_cast<T*>(out.data);
    parallel_for(ctx, threads_, 1, [&](size_t part, size_t) {
      for_each_group(t, part, threads_, [&](size_t begin, size_t end) {
        TW_KERNEL(convolve_winograd, t, from, kernel, bias, to, begin, end, scratch(ctx, part));
      });
    });
  });
}

void WinogradConv2d::backward_weights(Context& ctx, const Tensor& x, const Tensor& dy,
                                      const Tensor& dw, const Tensor& dbias, bool accumulate,
                                      const Tensor&, const Tensor&, Transfers*) {
  expect("x", x, shape_.x());
  expect("dy", dy, shape_.y());
  const Tiling& t = forward_;
  const size_t blocks = t.out_channels / kLanes, block_floats = t.kernel_floats() / blocks;
  float* const all_sums = scratch(ctx, threads_);
  with_activation_type(shape_.dtype, [&]<class T>() {
    const auto *in = static_cast<const T*>(x.data), *gradient = static_cast<const T*>(dy.data);
    parallel_for(ctx, tile_parts_ * output_parts_, 1, [&](size_t task, size_t) {
      const size_t tiles = task / output_parts_, outputs = task % output_parts_;
      const winograd::Blocks mine{share(blocks, outputs, output_parts_),
                                  share(blocks, outputs + 1, output_parts_)};
      float* const sums = all_sums + tiles * sums_floats();
      float* const bias = shape_.bias ? sums + t.kernel_floats() : nullptr;
      std::fill(sums + mine.begin * block_floats, sums + mine.end * block_floats, 0.0f);
      if (shape_.bias) std::fill(bias + mine.begin * kLanes, bias + mine.end * kLanes, 0.0f);
      for_each_group(t, tiles, tile_parts_, [&](size_t begin, size_t end) {
        TW_KERNEL(correlate_winograd, t, in, gradient, begin, end, mine, sums, bias,
                  scratch(ctx, task));
      });
    });
  });
  parallel_for(ctx, blocks, 1, [&](size_t block, size_t) {
    TW_KERNEL(gradient_of_winograd_kernel, t, all_sums, tile_parts_, sums_floats(), block,
              static_cast<float*>(dw.data), accumulate);
  });
  if (!shape_.bias) return;
  for (size_t o = 0; o < t.out_channels; ++o) {
    float sum = 0;
    for (size_t part = 0; part < tile_parts_; ++part)
      sum += all_sums[part * sums_floats() + t.kernel_floats() + o];
    float& to = static_cast<float*>(dbias.data)[o];
    to = accumulate ? to + sum : sum;
  }
}

/// The baseline of x86-64 rounds each product.
bool has_fused_multiply_add() {
#ifdef __x86_64__
  return instruction_set() != InstructionSet::baseline;
#else
  return true;
#endif
}

}  // namespace

bool suits_winograd_conv2d(const Conv2dShape& s) {
  constexpr int64_t kMultiple = kLanes;
  const auto [narrow, wide] = std::minmax(s.in_channels, s.out_channels);
  if (s.kernel != 3 || s.stride != 1 || std::min(s.out_height(), s.out_width()) < 4) return false;
  if (forward_tiling(s).tiles() < kLanes) return false;  // products of tiles that are not there
  // More channels have so large transformed weights that reading them takes longer than it saves.
  // With AVX-512, oneDNN's own Winograd is faster for them; without it, oneDNN has none.
  const int64_t most = cpu_has_avx512() ? 256 : 512;
  if (narrow % kMultiple != 0 || wide % kMultiple != 0 || wide > most) return false;
  if (!has_fused_multiply_add()) return false;  // the transforms would double the rounding errors
  // products of bf16 by AMX are faster by more than Winograd's factor
  return s.dtype != DType::bf16 || !cpu_has_amx();
}

std::unique_ptr<Conv2d> create_winograd_conv2d(Context& ctx, const Conv2dShape& shape) {
  return std::make_unique<WinogradConv2d>(ctx, shape);
}

}  // namespace tw::ops
