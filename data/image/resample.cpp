#include "data/image/resample.h"

#include <algorithm>
#include <cmath>

#define TW_KERNELS "data/image/resample.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::TW_CPU {

/// Fraction bits of a pixel between the two passes.
inline constexpr int kExtra = 7;

/// One row of the first pass: a weighted sum of `count` rows.
inline void sum_rows(const uint8_t* in, size_t stride, const int16_t* taps, size_t count, size_t n,
                     int16_t* out) {
  constexpr size_t kBlock = 64;
  for (size_t begin = 0; begin < n; begin += kBlock) {
    const size_t length = std::min(kBlock, n - begin);
    int32_t sums[kBlock];
    std::fill_n(sums, kBlock, 1 << (14 - kExtra - 1));
    for (size_t t = 0; t < count; ++t) {
      const uint8_t* row = in + t * stride + begin;
      const int32_t tap = taps[t];
      for (size_t i = 0; i < length; ++i) sums[i] += tap * row[i];
    }
    for (size_t i = 0; i < length; ++i)
      out[begin + i] = static_cast<int16_t>(sums[i] >> (14 - kExtra));
  }
}

/// One row of the second pass.
inline void sum_columns(const int16_t* in, const Resampler::Axis& axis, bool mirror, uint8_t* out) {
  const size_t width = axis.first.size(), count = axis.count;
  constexpr int kShift = 14 + kExtra;
  for (size_t x = 0; x < width; ++x) {
    const int16_t* pixel = in + 3 * axis.first[x];
    const int16_t* taps = &axis.taps[x * count];
    int32_t r = 1 << (kShift - 1), g = r, b = r;
    for (size_t t = 0; t < count; ++t) {
      const int32_t tap = taps[t];
      r += tap * pixel[3 * t];
      g += tap * pixel[3 * t + 1];
      b += tap * pixel[3 * t + 2];
    }
    uint8_t* to = out + 3 * (mirror ? width - 1 - x : x);
    to[0] = static_cast<uint8_t>(r >> kShift);
    to[1] = static_cast<uint8_t>(g >> kShift);
    to[2] = static_cast<uint8_t>(b >> kShift);
  }
}

}  // namespace tw::TW_CPU
#else
namespace tw {

namespace {

/// Taps for `out` pixels over [begin, begin + length) of an input of `size` pixels, or of those
/// pixels alone.
void make_axis(double begin, double length, int size, bool cut, int out, Resampler::Axis& axis) {
  const double scale = length / out;
  const double support = std::max(1.0, scale);
  const int low = cut ? static_cast<int>(begin) : 0;
  const int high = cut ? std::min(size, static_cast<int>(std::ceil(begin + length))) : size;
  axis.count =
      static_cast<size_t>(std::min(high - low, static_cast<int>(std::ceil(support)) * 2 + 1));
  axis.first.resize(static_cast<size_t>(out));
  axis.taps.assign(static_cast<size_t>(out) * axis.count, 0);
  for (int o = 0; o < out; ++o) {
    const double centre = begin + (o + 0.5) * scale;
    const int first = std::clamp(static_cast<int>(std::floor(centre - support + 0.5)), low,
                                 high - static_cast<int>(axis.count));
    const auto weight = [&](size_t t) {
      return std::max(0.0, 1 - std::abs(first + static_cast<double>(t) + 0.5 - centre) / support);
    };
    double sum = 0;
    for (size_t t = 0; t < axis.count; ++t) sum += weight(t);
    int left = (1 << 14);
    int16_t* taps = &axis.taps[static_cast<size_t>(o) * axis.count];
    for (size_t t = 0; t < axis.count; ++t) {
      taps[t] = static_cast<int16_t>(std::lround(weight(t) / sum * (1 << 14)));
      left -= taps[t];
    }
    *std::max_element(taps, taps + axis.count) += static_cast<int16_t>(left);
    axis.first[static_cast<size_t>(o)] = first;
  }
}

}  // namespace

void Resampler::run(const Picture& picture, int width, int height, bool mirror,
                    std::span<uint8_t> out, bool cut) {
  const Box& box = picture.box;
  make_axis(box.y, box.height, picture.height, cut, height, rows_);
  make_axis(box.x, box.width, picture.width, cut, width, columns_);
  const size_t stride = 3 * static_cast<size_t>(picture.width);
  row_.resize(stride);
  for (size_t y = 0; y < static_cast<size_t>(height); ++y) {
    const uint8_t* first = picture.pixels + static_cast<size_t>(rows_.first[y]) * stride;
    TW_KERNEL(sum_rows, first, stride, &rows_.taps[y * rows_.count], rows_.count, stride,
              row_.data());
    TW_KERNEL(sum_columns, row_.data(), columns_, mirror, &out[y * 3 * static_cast<size_t>(width)]);
  }
}

}  // namespace tw
#endif
