#include "engine/ops/cpu/winograd.h"

#include <cstring>

#include "engine/core/simd.h"

namespace tw::ops::winograd {
namespace {

using Lanes = float __attribute__((vector_size(64)));
using Words = uint32_t __attribute__((vector_size(64)));
using Halves = uint16_t __attribute__((vector_size(32)));
static_assert(sizeof(Lanes) == kLanes * sizeof(float));

/// Length of kLanes channels of the transformed tiles of a group.
constexpr size_t kBlock = kGroup * kLanes;

// Vectors are passed by reference: passing them by value would depend on the instruction set.
TW_INLINE void load(const float* from, Lanes& to) { std::memcpy(&to, from, sizeof to); }
TW_INLINE void load(const bf16* from, Lanes& to) {
  Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  to = reinterpret_cast<Lanes>(__builtin_convertvector(halves, Words) << 16);
}
TW_INLINE void store(const Lanes& from, float* to) { std::memcpy(to, &from, sizeof from); }
/// Rounds as ops::store does.
TW_INLINE void store(const Lanes& from, bf16* to) {
  const Words bits = reinterpret_cast<Words>(from);
  const Words carry = (0x7fffu + ((bits >> 16) & 1u)) & reinterpret_cast<Words>(from == from);
  const Halves halves = __builtin_convertvector((bits + carry) >> 16, Halves);
  std::memcpy(static_cast<void*>(to), &halves, sizeof halves);
}

TW_INLINE void add(const Lanes& what, float* to) {
  Lanes sum;
  load(to, sum);
  store(sum + what, to);
}

// The points of the interpolation are 0, a, -a, b, -b and infinity. These a and b, which are
// oneDNN's, keep rounding errors near those of a direct sum; with 1 and 2 they are twice as large.
constexpr float kA = 0.625f, kB = 1.5f;
constexpr float kA2 = kA * kA, kB2 = kB * kB;
// product of the distances of a point to the other finite points: of 0, of a and -a, of b and -b
constexpr float kAt0 = kA2 * kB2, kAtA = 2 * kA2 * (kA2 - kB2), kAtB = 2 * kB2 * (kB2 - kA2);

// The one-dimensional transforms. Each reads values `from` apart and writes values `to` apart.

TW_INLINE void transform_input(const Lanes* d, size_t from, Lanes* out, size_t to) {
  const Lanes d1 = d[from], d2 = d[2 * from], d3 = d[3 * from], d4 = d[4 * from];
  const Lanes even_a = d4 - kB2 * d2, odd_a = d3 - kB2 * d1;
  const Lanes even_b = d4 - kA2 * d2, odd_b = d3 - kA2 * d1;
  out[0] = kAt0 * d[0] - (kA2 + kB2) * d2 + d4;
  out[to] = even_a + kA * odd_a;
  out[2 * to] = even_a - kA * odd_a;
  out[3 * to] = even_b + kB * odd_b;
  out[4 * to] = even_b - kB * odd_b;
  out[5 * to] = kAt0 * d1 - (kA2 + kB2) * d3 + d[5 * from];
}

TW_INLINE void transform_output(const Lanes* m, size_t from, Lanes* out, size_t to) {
  const Lanes even_a = m[from] + m[2 * from], odd_a = m[from] - m[2 * from];
  const Lanes even_b = m[3 * from] + m[4 * from], odd_b = m[3 * from] - m[4 * from];
  out[0] = m[0] + even_a + even_b;
  out[to] = kA * odd_a + kB * odd_b;
  out[2 * to] = kA2 * even_a + kB2 * even_b;
  out[3 * to] = kA * kA2 * odd_a + kB * kB2 * odd_b + m[5 * from];
}

/// The transpose of transform_output.
TW_INLINE void transform_output_gradient(const Lanes* g, size_t from, Lanes* out, size_t to) {
  const Lanes g1 = g[from], g2 = g[2 * from], g3 = g[3 * from];
  const Lanes even_a = g[0] + kA2 * g2, odd_a = g1 + kA2 * g3;
  const Lanes even_b = g[0] + kB2 * g2, odd_b = g1 + kB2 * g3;
  out[0] = g[0];
  out[to] = even_a + kA * odd_a;
  out[2 * to] = even_a - kA * odd_a;
  out[3 * to] = even_b + kB * odd_b;
  out[4 * to] = even_b - kB * odd_b;
  out[5 * to] = g3;
}

TW_INLINE void transform_taps(const Lanes* g, size_t from, Lanes* out, size_t to) {
  const Lanes g1 = g[from], g2 = g[2 * from];
  const Lanes even_a = (1 / kAtA) * g[0] + (kA2 / kAtA) * g2, odd_a = (kA / kAtA) * g1;
  const Lanes even_b = (1 / kAtB) * g[0] + (kB2 / kAtB) * g2, odd_b = (kB / kAtB) * g1;
  out[0] = (1 / kAt0) * g[0];
  out[to] = even_a + odd_a;
  out[2 * to] = even_a - odd_a;
  out[3 * to] = even_b + odd_b;
  out[4 * to] = even_b - odd_b;
  out[5 * to] = g2;
}

/// The transpose of transform_taps.
TW_INLINE void transform_taps_gradient(const Lanes* u, size_t from, Lanes* out, size_t to) {
  const Lanes even_a = u[from] + u[2 * from], odd_a = u[from] - u[2 * from];
  const Lanes even_b = u[3 * from] + u[4 * from], odd_b = u[3 * from] - u[4 * from];
  out[0] = (1 / kAt0) * u[0] + (1 / kAtA) * even_a + (1 / kAtB) * even_b;
  out[to] = (kA / kAtA) * odd_a + (kB / kAtB) * odd_b;
  out[2 * to] = (kA2 / kAtA) * even_a + (kB2 / kAtB) * even_b + u[5 * from];
}

/// Image and first output pixel of a tile.
struct Place {
  size_t image, row, column;

  Place(const Tiling& t, size_t tile)
      : image(tile / t.tiles_an_image()),
        row(tile % t.tiles_an_image() / t.across() * 4),
        column(tile % t.across() * 4) {}
};

/// Writes the transformed input of a tile: the first kLanes channels of a point are at `to` +
/// point * input_stride(), each kLanes more are kBlock floats on.
template <class T>
TW_INLINE void transform_tile(const Tiling& t, const T* in, size_t tile, float* to) {
  const Place place(t, tile);
  // pixels before the image wrap around to large numbers, and are outside, too
  const size_t row = place.row - t.padding, column = place.column - t.padding;
  const T* const image = in + place.image * t.in_height * t.in_width * t.in_channels;
  for (size_t c = 0; c < t.in_channels; c += kLanes) {
    Lanes half[kPoints];
    for (size_t i = 0; i < 6; ++i) {
      Lanes d[6];
      for (size_t j = 0; j < 6; ++j) {
        if (row + i < t.in_height && column + j < t.in_width)
          load(image + ((row + i) * t.in_width + column + j) * t.in_channels + c, d[j]);
        else
          d[j] = Lanes{};
      }
      transform_input(d, 1, half + 6 * i, 1);
    }
    for (size_t j = 0; j < 6; ++j) {
      Lanes out[6];
      transform_input(half + j, 6, out, 1);
      for (size_t i = 0; i < 6; ++i) store(out[i], to + (6 * i + j) * t.input_stride());
    }
    to += kBlock;
  }
}

/// Writes the output of a tile from its 36 points, which are output_stride() apart.
template <class T>
TW_INLINE void write_tile(const Tiling& t, const float* points, const float* bias, size_t tile,
                          size_t channel, T* out) {
  Lanes half[24], added{};
  if (bias != nullptr) load(bias + channel, added);
  for (size_t i = 0; i < 6; ++i) {
    Lanes m[6];
    for (size_t j = 0; j < 6; ++j) load(points + (6 * i + j) * t.output_stride(), m[j]);
    transform_output(m, 1, half + 4 * i, 1);
  }
  const Place place(t, tile);
  for (size_t j = 0; j < 4; ++j) {
    Lanes y[4];
    transform_output(half + j, 4, y, 1);
    for (size_t i = 0; i < 4; ++i) {
      const size_t row = place.row + i, column = place.column + j;
      y[i] += added;
      if (row < t.out_height && column < t.out_width)
        store(y[i],
              out + ((place.image * t.out_height + row) * t.out_width + column) * t.out_channels +
                  channel);
    }
  }
}

/// The gradient of write_tile, from the gradient of the output to that of the points; adds that of
/// the bias to `bias`.
template <class T>
TW_INLINE void read_tile(const Tiling& t, const T* gradient, size_t tile, size_t channel,
                         float* points, Lanes& bias) {
  const Place place(t, tile);
  Lanes half[24];
  for (size_t i = 0; i < 4; ++i) {
    Lanes g[4];
    for (size_t j = 0; j < 4; ++j) {
      const size_t row = place.row + i, column = place.column + j;
      if (row < t.out_height && column < t.out_width)
        load(gradient +
                 ((place.image * t.out_height + row) * t.out_width + column) * t.out_channels +
                 channel,
             g[j]);
      else
        g[j] = Lanes{};
    }
    bias += (g[0] + g[1]) + (g[2] + g[3]);
    transform_output_gradient(g, 1, half + 6 * i, 1);
  }
  for (size_t j = 0; j < 6; ++j) {
    Lanes out[6];
    transform_output_gradient(half + j, 6, out, 1);
    for (size_t i = 0; i < 6; ++i) store(out[i], points + (6 * i + j) * t.output_stride());
  }
}

/// to[tile, :] = sum over c of input[tile, c] * kernel[c, :], for kLanes tiles.
TW_INLINE void multiply(const float* input, const float* kernel, size_t channels, float* to) {
  Lanes sums[kLanes] = {};
  for (size_t block = 0; block < channels; block += kLanes, input += kBlock)
    for (size_t c = 0; c < kLanes; ++c) {
      Lanes w;
      load(kernel + (block + c) * kLanes, w);
#pragma GCC unroll 16
      for (size_t i = 0; i < kLanes; ++i) sums[i] += input[i * kLanes + c] * w;
    }
  for (size_t i = 0; i < kLanes; ++i) store(sums[i], to + i * kLanes);
}

/// sums[o, :] += sum over tiles of output[tile, o] * input[tile, :].
TW_INLINE void add_products(const float* output, const float* input, size_t tiles, float* sums) {
  Lanes all[kLanes];
  for (size_t o = 0; o < kLanes; ++o) load(sums + o * kLanes, all[o]);
  for (size_t tile = 0; tile < tiles; ++tile) {
    Lanes x;
    load(input + tile * kLanes, x);
#pragma GCC unroll 16
    for (size_t o = 0; o < kLanes; ++o) all[o] += output[tile * kLanes + o] * x;
  }
  for (size_t o = 0; o < kLanes; ++o) store(all[o], sums + o * kLanes);
}

template <class T>
TW_INLINE void transform_tiles(const Tiling& t, const T* in, size_t begin, size_t end, float* to) {
  for (size_t tile = begin; tile < end; ++tile)
    transform_tile(t, in, tile, to + (tile - begin) * kLanes);
}

template <class T>
TW_INLINE void convolve_any(const Tiling& t, const T* in, const float* kernel, const float* bias,
                            T* out, size_t begin, size_t end, float* scratch) {
  float* const input = scratch;
  float* const points = scratch + kPoints * t.input_stride();
  transform_tiles(t, in, begin, end, input);
  for (size_t channel = 0; channel < t.out_channels; channel += kLanes) {
    for (size_t point = 0; point < kPoints; ++point) {
      // up to kLanes - 1 tiles beyond the end are computed from what the scratch holds, and unused
      for (size_t tile = 0; tile < end - begin; tile += kLanes)
        multiply(input + point * t.input_stride() + tile * kLanes, kernel, t.in_channels,
                 points + point * t.output_stride() + tile * kLanes);
      kernel += t.in_channels * kLanes;
    }
    for (size_t tile = begin; tile < end; ++tile)
      write_tile(t, points + (tile - begin) * kLanes, bias, tile, channel, out);
  }
}

template <class T>
TW_INLINE void correlate_any(const Tiling& t, const T* in, const T* out_gradient, size_t begin,
                             size_t end, Blocks blocks, float* sums, float* bias, float* scratch) {
  float* const inputs = scratch;
  float* const outputs = scratch + kPoints * t.input_stride();
  transform_tiles(t, in, begin, end, inputs);
  for (size_t block = blocks.begin; block < blocks.end; ++block) {
    Lanes total{};
    for (size_t tile = begin; tile < end; ++tile)
      read_tile(t, out_gradient, tile, block * kLanes,
                outputs + block * kBlock + (tile - begin) * kLanes, total);
    if (bias != nullptr) add(total, bias + block * kLanes);
  }
  // the values of one point stay in the caches for all pairs of channels
  for (size_t point = 0; point < kPoints; ++point)
    for (size_t block = blocks.begin; block < blocks.end; ++block)
      for (size_t c = 0; c < t.in_channels; c += kLanes)
        add_products(outputs + point * t.output_stride() + block * kBlock,
                     inputs + point * t.input_stride() + c * kGroup, end - begin,
                     sums + ((block * t.in_channels + c) * kPoints + point * kLanes) * kLanes);
}

}  // namespace

TW_AVX512 void transform_kernel(const KernelView& w, size_t rows, float* to) {
  for (size_t r = 0; r < rows; ++r) {
    Lanes g[9], half[18];
    for (size_t tap = 0; tap < 9; ++tap) {
      const float* const first = w.first + static_cast<std::ptrdiff_t>(r) * w.row +
                                 static_cast<std::ptrdiff_t>(tap) * w.tap;
      for (size_t l = 0; l < kLanes; ++l)
        g[tap][l] = first[static_cast<std::ptrdiff_t>(l) * w.lane];
    }
    for (size_t i = 0; i < 3; ++i) transform_taps(g + 3 * i, 1, half + 6 * i, 1);
    for (size_t j = 0; j < 6; ++j) {
      Lanes out[6];
      transform_taps(half + j, 6, out, 1);
      for (size_t i = 0; i < 6; ++i) store(out[i], to + ((6 * i + j) * rows + r) * kLanes);
    }
  }
}

TW_AVX512 void convolve(const Tiling& t, const float* in, const float* kernel, const float* bias,
                        float* out, size_t begin, size_t end, float* scratch) {
  convolve_any(t, in, kernel, bias, out, begin, end, scratch);
}
TW_AVX512 void convolve(const Tiling& t, const bf16* in, const float* kernel, const float* bias,
                        bf16* out, size_t begin, size_t end, float* scratch) {
  convolve_any(t, in, kernel, bias, out, begin, end, scratch);
}

TW_AVX512 void correlate(const Tiling& t, const float* in, const float* out_gradient, size_t begin,
                         size_t end, Blocks outputs, float* sums, float* bias, float* scratch) {
  correlate_any(t, in, out_gradient, begin, end, outputs, sums, bias, scratch);
}
TW_AVX512 void correlate(const Tiling& t, const bf16* in, const bf16* out_gradient, size_t begin,
                         size_t end, Blocks outputs, float* sums, float* bias, float* scratch) {
  correlate_any(t, in, out_gradient, begin, end, outputs, sums, bias, scratch);
}

TW_AVX512 void gradient_of_kernel(const Tiling& t, const float* sums, size_t parts, size_t stride,
                                  size_t output_block, float* dw, bool accumulate) {
  for (size_t c = 0; c < t.in_channels; c += kLanes)
    for (size_t o = 0; o < kLanes; ++o) {
      const float* const from =
          sums + (output_block * t.in_channels + c) * kPoints * kLanes + o * kLanes;
      Lanes half[18];
      for (size_t i = 0; i < 6; ++i) {
        Lanes u[6] = {};
        for (size_t part = 0; part < parts; ++part)
          for (size_t j = 0; j < 6; ++j) {
            Lanes one;
            load(from + part * stride + (6 * i + j) * kLanes * kLanes, one);
            u[j] += one;
          }
        transform_taps_gradient(u, 1, half + 3 * i, 1);
      }
      float* const to = dw + (output_block * kLanes + o) * 9 * t.in_channels + c;
      for (size_t j = 0; j < 3; ++j) {
        Lanes g[3];
        transform_taps_gradient(half + j, 3, g, 1);
        for (size_t i = 0; i < 3; ++i) {
          float* const at = to + (3 * i + j) * t.in_channels;
          if (accumulate)
            add(g[i], at);
          else
            store(g[i], at);
        }
      }
    }
}

}  // namespace tw::ops::winograd
