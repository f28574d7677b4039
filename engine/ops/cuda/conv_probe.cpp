#include "engine/ops/cuda/conv_probe.h"

#include <algorithm>
#include <cmath>

#include "engine/core/copy.h"
#include "engine/core/rng.h"
#include "engine/cuda/cuda.h"

namespace tw::ops {
namespace {

using cudnn::ConvPass, cudnn::Convolution;

constexpr int64_t kPeriod = 65'537;  // prime: no row of a tensor repeats the one before it
constexpr int kSamples = 12;

size_t bytes_of(const cudnn::Dims& dims, DType dtype) {
  return static_cast<size_t>(dims[0] * dims[1] * dims[2] * dims[3]) * size_of(dtype);
}

/// Position of (n, c, h, w) with the channels innermost.
int64_t at(const cudnn::Dims& dims, int64_t n, int64_t c, int64_t h, int64_t w) {
  return ((n * dims[2] + h) * dims[3] + w) * dims[1] + c;
}

/// Element i of an operand is element i modulo kPeriod of these: uniform in [-1, 1), as bf16 and
/// f32 hold them.
struct Pattern {
  std::vector<bf16> halves;
  std::vector<float> floats;

  Pattern(DType dtype, uint64_t seed) {
    const Philox philox(seed, Purpose::test);
    for (uint64_t i = 0; i < kPeriod; ++i) {
      floats.push_back(2 * uniform(philox(i)[0]) - 1);
      if (dtype != DType::bf16) continue;
      halves.emplace_back(floats.back());
      floats.back() = static_cast<float>(halves.back());
    }
  }
  std::span<const std::byte> bytes() const {
    return halves.empty() ? std::as_bytes(std::span(floats)) : std::as_bytes(std::span(halves));
  }
};

/// The patterns of x, w and y.
const std::array<Pattern, 3>& patterns_of(DType dtype) {
  using enum DType;
  static const std::array<Pattern, 3> floats{{{f32, 0}, {f32, 1}, {f32, 2}}},
      halves{{{bf16, 0}, {bf16, 1}, {bf16, 2}}};
  return dtype == bf16 ? halves : floats;
}

/// Repeats a pattern over device memory.
void fill(Context& ctx, std::span<const std::byte> pattern, const Buffer& to) {
  const std::span<std::byte> all{to.data(), to.bytes()};
  size_t filled = std::min(pattern.size(), all.size());
  copy_bytes(ctx, pattern.first(filled), all.first(filled));
  while (filled < all.size()) {
    const size_t more = std::min(filled, all.size() - filled);
    copy_bytes(ctx, all.first(more), all.subspan(filled, more));
    filled += more;
  }
}

}  // namespace

ConvProbe::ConvProbe(Context& ctx, const Convolution& c)
    : c_(c),
      x_(Device::cuda, bytes_of(c.x, c.x_type)),
      w_(Device::cuda, bytes_of(c.w, c.w_type)),
      y_(Device::cuda, bytes_of(c.y, c.y_type)) {
  const auto& [x, w, y] = patterns_of(c.x_type);
  fill(ctx, x.bytes(), x_);
  fill(ctx, w.bytes(), w_);
  fill(ctx, y.bytes(), y_);
  const Philox philox(3, Purpose::test);
  const auto elements =
      static_cast<uint32_t>(std::min<size_t>(result().bytes() / size_of(c.x_type), UINT32_MAX));
  for (uint64_t i = 0; i < kSamples; ++i) samples_.push_back(sample(below(philox(i)[0], elements)));
}

const Buffer& ConvProbe::result() const {
  return c_.pass == ConvPass::forward ? y_ : c_.pass == ConvPass::backward_data ? x_ : w_;
}

ConvProbe::Sample ConvProbe::sample(int64_t index) const {
  // the first and last value of every index of the sum; those of the element are fixed
  struct Range {
    int64_t first, last;
  };
  const auto all = [](int64_t size) { return Range{0, size - 1}; };
  Range n = all(c_.x[0]), in = all(c_.x[1]), out = all(c_.y[1]);
  Range row = all(c_.w[2]), column = all(c_.w[3]), p = all(c_.y[2]), q = all(c_.y[3]);
  Range h = all(c_.x[2]), w = all(c_.x[3]);
  const cudnn::Dims& dims = c_.pass == ConvPass::forward         ? c_.y
                            : c_.pass == ConvPass::backward_data ? c_.x
                                                                 : c_.w;
  int64_t rest = index;
  const auto next = [&](int64_t size) {
    const int64_t value = rest % size;
    rest /= size;
    return Range{value, value};
  };
  const Range channel = next(dims[1]), second = next(dims[3]), first = next(dims[2]),
              image = next(dims[0]);
  if (c_.pass == ConvPass::forward) {
    n = image, out = channel, p = first, q = second;
  } else if (c_.pass == ConvPass::backward_data) {
    n = image, in = channel, h = first, w = second;
  } else {
    out = image, in = channel, row = first, column = second;
  }

  const auto& [of_x, of_w, of_y] = patterns_of(c_.x_type);
  const auto element = [](const Pattern& pattern, int64_t i) {
    return double{pattern.floats[static_cast<size_t>(static_cast<uint64_t>(i) % kPeriod)]};
  };
  double sum = 0, squares = 0, products = 0;
  for (int64_t i = n.first; i <= n.last; ++i)
    for (int64_t y = p.first; y <= p.last; ++y)
      for (int64_t r = row.first; r <= row.last; ++r) {
        const int64_t top = y * c_.stride - c_.padding + r;
        if (top < h.first || top > h.last) continue;
        for (int64_t x = q.first; x <= q.last; ++x)
          for (int64_t s = column.first; s <= column.last; ++s) {
            const int64_t left = x * c_.stride - c_.padding + s;
            if (left < w.first || left > w.last) continue;
            for (int64_t k = out.first; k <= out.last; ++k)
              for (int64_t c = in.first; c <= in.last; ++c) {
                // the product of the two operands that are not the result
                const double a = c_.pass == ConvPass::forward ? element(of_w, at(c_.w, k, c, r, s))
                                                              : element(of_y, at(c_.y, i, k, y, x));
                const double b = c_.pass == ConvPass::backward_data
                                     ? element(of_w, at(c_.w, k, c, r, s))
                                     : element(of_x, at(c_.x, i, c, top, left));
                sum += a * b;
                squares += a * b * a * b;
                ++products;
              }
          }
      }
  return {.index = index, .value = sum, .norm = std::sqrt(squares), .products = products};
}

void ConvProbe::clear(Context& ctx) {
  cuda::expect(cudaMemsetAsync(result().data(), 0xff, result().bytes(), cuda::stream(ctx)),
               "convolution");
}

bool ConvProbe::accurate(Context& ctx, bool tf32) const {
  // TF32 rounds both operands to 11 bits, which moves a sum by 4e-4 of the norm on average; N
  // products added in f32, one after the other, move it by 4e-8 sqrt(N) of the norm
  const double of_norm = c_.x_type == DType::f32 && !tf32 ? 3e-4 : 3e-3;
  const double of_value = c_.x_type == DType::bf16 ? 0x1p-8 : 0;
  const size_t size = size_of(c_.x_type);
  return std::ranges::all_of(samples_, [&](const Sample& sample) {
    float value = 0;
    bf16 half;
    const std::span<std::byte> to = c_.x_type == DType::bf16
                                        ? std::as_writable_bytes(std::span(&half, 1))
                                        : std::as_writable_bytes(std::span(&value, 1));
    copy_bytes(ctx, {result().data() + static_cast<size_t>(sample.index) * size, size}, to);
    if (c_.x_type == DType::bf16) value = static_cast<float>(half);
    return std::abs(value - sample.value) <=
           (of_norm + 1e-7 * std::sqrt(sample.products)) * sample.norm +
               of_value * std::abs(sample.value);
  });
}

}  // namespace tw::ops
