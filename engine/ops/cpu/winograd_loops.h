// Loops of Winograd's convolution, included once for each instruction set by winograd.h.

namespace tw::ops::TW_CPU {

using winograd::Blocks, winograd::KernelView, winograd::Tiling;
using winograd::kGroup, winograd::kLanes, winograd::kPoints;

using Channels = tw::TW_CPU::Lanes<float, kLanes>;
/// The transforms take one vector of the channels after the other.
using Vector = Channels::Vector;
inline constexpr size_t kWidth = Channels::kWidth, kParts = Channels::kParts;

/// Length of kLanes channels of the transformed tiles of a group.
inline constexpr size_t kBlock = kGroup * kLanes;
/// Sums of products that stay in registers: of 32 vectors of AVX-512, or of 16, the most that leave
/// room for what is loaded.
inline constexpr size_t kSums = Channels::kParts == 1 ? 16 : 12 / Channels::kParts;

// The points of the interpolation are 0, a, -a, b, -b and infinity. These a and b, which are
// oneDNN's, keep rounding errors near those of a direct sum; with 1 and 2 they are twice as large.
inline constexpr float kA = 0.625f, kB = 1.5f;
inline constexpr float kA2 = kA * kA, kB2 = kB * kB;
// product of the distances of a point to the other finite points: of 0, of a and -a, of b and -b
inline constexpr float kAt0 = kA2 * kB2, kAtA = 2 * kA2 * (kA2 - kB2), kAtB = 2 * kB2 * (kB2 - kA2);

/// a * x, which the compiler does not fuse with a sum.
TW_INLINE Vector rounded(float a, const Vector& x) {
  Vector product = a * x;
#ifdef __x86_64__
  asm("" : "+v"(product));
#endif
  return product;
}

/// a * x + y, rounded once where the set can, or with the product rounded first.
template <bool kOnce = true>
TW_INLINE Vector axpy(float a, const Vector& x, const Vector& y) {
  if constexpr (!kOnce) return rounded(a, x) + y;
#if TW_VECTOR_BYTES == 64
  return _mm512_fmadd_ps(_mm512_set1_ps(a), x, y);
#elif TW_VECTOR_BYTES == 32
  return _mm256_fmadd_ps(_mm256_set1_ps(a), x, y);
#else
  return a * x + y;
#endif
}

// The one-dimensional transforms. Each reads values `from` apart and writes values `to` apart. On
// x86-64, those of input and output say which products are rounded: the compiler, which chooses on
// other processors and of the taps, would choose by the code around them, and the last bits with
// it.

enum class Pass { rows, columns };  ///< in this order

template <class T, Pass pass>
TW_INLINE void transform_input(const Vector* d, size_t from, Vector* out, size_t to) {
  constexpr bool kOnce = pass == Pass::columns || std::is_same_v<T, float>;
  const Vector d1 = d[from], d2 = d[2 * from], d3 = d[3 * from], d4 = d[4 * from];
  const Vector even_a = axpy(-kB2, d2, d4), odd_a = axpy(-kB2, d1, d3);
  const Vector even_b = axpy(-kA2, d2, d4), odd_b = axpy(-kA2, d1, d3);
  out[0] = axpy(kAt0, d[0], rounded(-(kA2 + kB2), d2)) + d4;
  out[to] = axpy<kOnce>(kA, odd_a, even_a);
  out[2 * to] = axpy<kOnce>(-kA, odd_a, even_a);
  out[3 * to] = axpy<kOnce>(kB, odd_b, even_b);
  out[4 * to] = axpy<kOnce>(-kB, odd_b, even_b);
  out[5 * to] = axpy(kAt0, d1, rounded(-(kA2 + kB2), d3)) + d[5 * from];
}

/// a * x + b * y
template <Pass pass>
TW_INLINE Vector sum(float a, const Vector& x, float b, const Vector& y) {
  return pass == Pass::rows ? axpy(a, x, rounded(b, y)) : axpy(b, y, rounded(a, x));
}

template <Pass pass>
TW_INLINE void transform_output(const Vector* m, size_t from, Vector* out, size_t to) {
  const Vector even_a = m[from] + m[2 * from], odd_a = m[from] - m[2 * from];
  const Vector even_b = m[3 * from] + m[4 * from], odd_b = m[3 * from] - m[4 * from];
  out[0] = m[0] + even_a + even_b;
  out[to] = sum<pass>(kA, odd_a, kB, odd_b);
  out[2 * to] = sum<pass>(kA2, even_a, kB2, even_b);
  out[3 * to] = sum<pass>(kA * kA2, odd_a, kB * kB2, odd_b) + m[5 * from];
}

/// The transpose of transform_output.
template <Pass pass>
TW_INLINE void transform_output_gradient(const Vector* g, size_t from, Vector* out, size_t to) {
  constexpr bool kOnce = pass == Pass::columns;
  const Vector g1 = g[from], g2 = g[2 * from], g3 = g[3 * from];
  const Vector even_a = axpy<kOnce>(kA2, g2, g[0]), odd_a = axpy(kA2, g3, g1);
  const Vector even_b = axpy<kOnce>(kB2, g2, g[0]), odd_b = axpy(kB2, g3, g1);
  out[0] = g[0];
  out[to] = axpy(kA, odd_a, even_a);
  out[2 * to] = axpy(-kA, odd_a, even_a);
  out[3 * to] = axpy(kB, odd_b, even_b);
  out[4 * to] = axpy(-kB, odd_b, even_b);
  out[5 * to] = g3;
}

TW_INLINE void transform_taps(const Vector* g, size_t from, Vector* out, size_t to) {
  const Vector g1 = g[from], g2 = g[2 * from];
  const Vector even_a = (1 / kAtA) * g[0] + (kA2 / kAtA) * g2, odd_a = (kA / kAtA) * g1;
  const Vector even_b = (1 / kAtB) * g[0] + (kB2 / kAtB) * g2, odd_b = (kB / kAtB) * g1;
  out[0] = (1 / kAt0) * g[0];
  out[to] = even_a + odd_a;
  out[2 * to] = even_a - odd_a;
  out[3 * to] = even_b + odd_b;
  out[4 * to] = even_b - odd_b;
  out[5 * to] = g2;
}

/// The transpose of transform_taps.
TW_INLINE void transform_taps_gradient(const Vector* u, size_t from, Vector* out, size_t to) {
  const Vector even_a = u[from] + u[2 * from], odd_a = u[from] - u[2 * from];
  const Vector even_b = u[3 * from] + u[4 * from], odd_b = u[3 * from] - u[4 * from];
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
  /// Of the output pixel (row + i, column + j), from the start of the tensor.
  TW_INLINE size_t offset(const Tiling& t, size_t i, size_t j) const {
    return ((image * t.out_height + row + i) * t.out_width + column + j) * t.out_channels;
  }
};

/// Writes the transformed input of a tile: the first kLanes channels of a point are at `to` +
/// point * input_stride(), each kLanes more are kBlock floats on.
template <class T>
TW_INLINE void transform_tile(const Tiling& t, const T* in, size_t tile, float* to) {
  const Place place(t, tile);
  // pixels before the image wrap around to large numbers, and are outside, too
  const size_t row = place.row - t.padding, column = place.column - t.padding;
  const T* const image = in + place.image * t.in_height * t.in_width * t.in_channels;
  for (size_t c = 0; c < t.in_channels; c += kWidth) {
    float* const at = to + c / kLanes * kBlock + c % kLanes;
    Vector half[kPoints];
    for (size_t i = 0; i < 6; ++i) {
      Vector d[6];
#pragma GCC unroll 6
      for (size_t j = 0; j < 6; ++j) {
        d[j] = Vector{};
        if (row + i < t.in_height && column + j < t.in_width)
          Channels::load(image + ((row + i) * t.in_width + column + j) * t.in_channels + c, d[j]);
      }
      transform_input<T, Pass::rows>(d, 1, half + 6 * i, 1);
    }
    for (size_t j = 0; j < 6; ++j) {
      Vector out[6];
      transform_input<T, Pass::columns>(half + j, 6, out, 1);
#pragma GCC unroll 6
      for (size_t i = 0; i < 6; ++i) Channels::store(out[i], at + (6 * i + j) * t.input_stride());
    }
  }
}

/// Writes the output of a tile from its 36 points, which are output_stride() apart.
template <class T>
TW_INLINE void write_tile(const Tiling& t, const float* points, const float* bias, size_t tile,
                          size_t channel, T* out) {
  const Place place(t, tile);
  const size_t rows = t.out_height - place.row, columns = t.out_width - place.column;
  Channels added{};
  if (bias != nullptr) added = Channels::load(bias + channel);
  for (size_t p = 0; p < kParts; ++p) {
    Vector half[24];
#pragma GCC unroll 6
    for (size_t i = 0; i < 6; ++i) {
      Vector m[6];
#pragma GCC unroll 6
      for (size_t j = 0; j < 6; ++j)
        Channels::load(points + (6 * i + j) * t.output_stride() + p * kWidth, m[j]);
      transform_output<Pass::rows>(m, 1, half + 4 * i, 1);
    }
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      Vector y[4];
      transform_output<Pass::columns>(half + j, 4, y, 1);
#pragma GCC unroll 4
      for (size_t i = 0; i < 4; ++i)
        if (i < rows && j < columns)
          Channels::store(y[i] + added.part[p], out + place.offset(t, i, j) + channel + p * kWidth);
    }
  }
}

/// The gradient of write_tile, from the gradient of the output to that of the points; adds that of
/// the bias to `bias`.
template <class T>
TW_INLINE void read_tile(const Tiling& t, const T* gradient, size_t tile, size_t channel,
                         float* points, Channels& bias) {
  const Place place(t, tile);
  const size_t rows = t.out_height - place.row, columns = t.out_width - place.column;
  for (size_t p = 0; p < kParts; ++p) {
    Vector half[24];
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      Vector g[4];
#pragma GCC unroll 4
      for (size_t j = 0; j < 4; ++j) {
        g[j] = Vector{};
        if (i < rows && j < columns)
          Channels::load(gradient + place.offset(t, i, j) + channel + p * kWidth, g[j]);
      }
      bias.part[p] += (g[0] + g[1]) + (g[2] + g[3]);
      transform_output_gradient<Pass::rows>(g, 1, half + 6 * i, 1);
    }
#pragma GCC unroll 6
    for (size_t j = 0; j < 6; ++j) {
      Vector out[6];
      transform_output_gradient<Pass::columns>(half + j, 6, out, 1);
#pragma GCC unroll 6
      for (size_t i = 0; i < 6; ++i)
        Channels::store(out[i], points + (6 * i + j) * t.output_stride() + p * kWidth);
    }
  }
}

/// to[tile, :] = sum over c of input[tile, c] * kernel[c, :], for the tiles [first, kLanes).
template <size_t first = 0>
TW_INLINE void multiply(const float* input, const float* kernel, size_t channels, float* to) {
  constexpr size_t n = std::min(kSums, kLanes - first);
  Channels sums[n] = {};
  const float* from = input + first * kLanes;
  for (size_t block = 0; block < channels; block += kLanes, from += kBlock)
    for (size_t c = 0; c < kLanes; ++c) {
      const Channels w = Channels::load(kernel + (block + c) * kLanes);
#pragma GCC unroll 16
      for (size_t i = 0; i < n; ++i) sums[i].add(from[i * kLanes + c], w);
    }
#pragma GCC unroll 16
  for (size_t i = 0; i < n; ++i) sums[i].store(to + (first + i) * kLanes);
  if constexpr (first + n < kLanes) multiply<first + n>(input, kernel, channels, to);
}

/// sums[o, :] += sum over tiles of output[tile, o] * input[tile, :], for o in [first, kLanes).
template <size_t first = 0>
TW_INLINE void add_products(const float* output, const float* input, size_t tiles, float* sums) {
  constexpr size_t n = std::min(kSums, kLanes - first);
  Channels all[n];
#pragma GCC unroll 16
  for (size_t o = 0; o < n; ++o) all[o] = Channels::load(sums + (first + o) * kLanes);
  for (size_t tile = 0; tile < tiles; ++tile) {
    const Channels x = Channels::load(input + tile * kLanes);
#pragma GCC unroll 16
    for (size_t o = 0; o < n; ++o) all[o].add(output[tile * kLanes + first + o], x);
  }
#pragma GCC unroll 16
  for (size_t o = 0; o < n; ++o) all[o].store(sums + (first + o) * kLanes);
  if constexpr (first + n < kLanes) add_products<first + n>(output, input, tiles, sums);
}

template <class T>
TW_INLINE void transform_tiles(const Tiling& t, const T* in, size_t begin, size_t end, float* to) {
  for (size_t tile = begin; tile < end; ++tile)
    transform_tile(t, in, tile, to + (tile - begin) * kLanes);
}

/// Writes the tiles [begin, end), at most kGroup, of out. `kernel` is [out_channels / kLanes, 36,
/// in_channels, kLanes]; `bias`, which may be null, is [out_channels].
template <class T>
void convolve_winograd(const Tiling& t, const T* in, const float* kernel, const float* bias, T* out,
                       size_t begin, size_t end, float* scratch) {
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

/// Adds what the tiles [begin, end), at most kGroup, contribute to the transformed gradient of the
/// kernel, and unless it is null to that of the bias, for some output channels. `sums` is
/// [out_channels / kLanes, in_channels / kLanes, 36, kLanes (out), kLanes (in)], `bias`
/// [out_channels].
template <class T>
void correlate_winograd(const Tiling& t, const T* in, const T* out_gradient, size_t begin,
                        size_t end, Blocks blocks, float* sums, float* bias, float* scratch) {
  float* const inputs = scratch;
  float* const outputs = scratch + kPoints * t.input_stride();
  transform_tiles(t, in, begin, end, inputs);
  for (size_t block = blocks.begin; block < blocks.end; ++block) {
    Channels total{};
    for (size_t tile = begin; tile < end; ++tile)
      read_tile(t, out_gradient, tile, block * kLanes,
                outputs + block * kBlock + (tile - begin) * kLanes, total);
    if (bias != nullptr)
      (Channels::load(bias + block * kLanes) += total).store(bias + block * kLanes);
  }
  // the values of one point stay in the caches for all pairs of channels
  for (size_t point = 0; point < kPoints; ++point)
    for (size_t block = blocks.begin; block < blocks.end; ++block)
      for (size_t c = 0; c < t.in_channels; c += kLanes)
        add_products(outputs + point * t.output_stride() + block * kBlock,
                     inputs + point * t.input_stride() + c * kGroup, end - begin,
                     sums + ((block * t.in_channels + c) * kPoints + point * kLanes) * kLanes);
}

/// Transforms the weights of kLanes output channels; `to` is [36, rows, kLanes], and the rows are
/// the input channels.
inline void transform_winograd_kernel(const KernelView& w, size_t rows, float* to) {
  for (size_t r = 0; r < rows; ++r)
    for (size_t lane = 0; lane < kLanes; lane += kWidth) {
      Vector g[9], half[18];
      for (size_t tap = 0; tap < 9; ++tap) {
        const float* const first = w.first + static_cast<std::ptrdiff_t>(r) * w.row +
                                   static_cast<std::ptrdiff_t>(tap) * w.tap;
        for (size_t l = 0; l < kWidth; ++l)
          g[tap][l] = first[static_cast<std::ptrdiff_t>(lane + l) * w.lane];
      }
      for (size_t i = 0; i < 3; ++i) transform_taps(g + 3 * i, 1, half + 6 * i, 1);
      for (size_t j = 0; j < 6; ++j) {
        Vector out[6];
        transform_taps(half + j, 6, out, 1);
        for (size_t i = 0; i < 6; ++i)
          Channels::store(out[i], to + ((6 * i + j) * rows + r) * kLanes + lane);
      }
    }
}

/// Adds up `parts` arrays of sums, `stride` floats apart, for one block of output channels, and
/// writes, or with `accumulate` adds, the gradient of the OHWI weights, which begin at dw.
inline void gradient_of_winograd_kernel(const Tiling& t, const float* sums, size_t parts,
                                        size_t stride, size_t output_block, float* dw,
                                        bool accumulate) {
  for (size_t c = 0; c < t.in_channels; c += kWidth)
    for (size_t o = 0; o < kLanes; ++o) {
      const float* const from =
          sums + (output_block * t.in_channels + c / kLanes * kLanes) * kPoints * kLanes +
          o * kLanes + c % kLanes;
      Vector half[18];
      for (size_t i = 0; i < 6; ++i) {
        Vector u[6] = {};
        for (size_t part = 0; part < parts; ++part)
          for (size_t j = 0; j < 6; ++j) {
            Vector one;
            Channels::load(from + part * stride + (6 * i + j) * kLanes * kLanes, one);
            u[j] += one;
          }
        transform_taps_gradient(u, 1, half + 3 * i, 1);
      }
      float* const to = dw + (output_block * kLanes + o) * 9 * t.in_channels + c;
      for (size_t j = 0; j < 3; ++j) {
        Vector g[3];
        transform_taps_gradient(half + j, 3, g, 1);
        for (size_t i = 0; i < 3; ++i) {
          float* const at = to + (3 * i + j) * t.in_channels;
          Vector before{};
          if (accumulate) Channels::load(at, before);
          Channels::store(accumulate ? before + g[i] : g[i], at);
        }
      }
    }
}

}  // namespace tw::ops::TW_CPU
