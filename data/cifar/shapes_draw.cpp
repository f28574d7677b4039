#include <algorithm>
#include <array>
#include <cstdlib>

#include "data/cifar/cifar_binary.h"
#include "data/cifar/shapes.h"
#include "engine/core/rng.h"

namespace tw {

namespace {

constexpr int kSide = 32;
constexpr int kUnit = 1024;  // 1.0 in the coordinates of a shape

using Colour = std::array<int, 3>;

/// The random numbers of one image, in order.
class Stream {
 public:
  Stream(uint32_t half, uint64_t id) : random_(1, Purpose::generate, half), id_(id) {}
  uint32_t word() {
    if (used_ % 4 == 0) block_ = random_(id_, used_ / 4);
    return block_[used_++ % 4];
  }
  /// Uniform in [low, high].
  int between(int low, int high) {
    return low + static_cast<int>(below(word(), static_cast<uint32_t>(high - low + 1)));
  }
  Colour colour() { return {between(0, 255), between(0, 255), between(0, 255)}; }

 private:
  Philox random_;
  uint64_t id_;
  uint32_t used_ = 0;
  Philox::Block block_{};
};

/// A five-pointed star of radius 1: the points outside at most one of the pentagram's lines.
bool in_star(int u, int v) {
  // unit normals at 90, 162, 234, 306 and 18 degrees; distance of the lines cos 72
  constexpr int normals[5][2] = {{0, 1024}, {-974, 316}, {-602, -828}, {602, -828}, {974, 316}};
  int outside = 0;
  for (const auto& n : normals) outside += n[0] * u + n[1] * v > 316 * kUnit;
  return outside <= 1;
}

/// Whether (u, v), in units of the shape's radius, belongs to a shape of this class.
bool inside(int shape, int u, int v) {
  const int square = std::max(std::abs(u), std::abs(v));
  const int radius2 = u * u + v * v;
  // bars a third of a radius wide
  const auto odd = [](int w) { return (w + kUnit) * 3 / kUnit % 2 != 0; };
  switch (shape) {
    case 0:  // disk
      return radius2 <= kUnit * kUnit;
    case 1:  // ring
      return radius2 <= kUnit * kUnit && radius2 >= 600 * 600;
    case 2:  // square
      return square <= 900;
    case 3:  // frame
      return square <= 900 && square >= 520;
    case 4:  // triangle
      return v <= 700 && std::abs(u) * 17 <= (v + kUnit) * 10;
    case 5:  // cross
      return square <= kUnit && std::min(std::abs(u), std::abs(v)) <= 300;
    case 6:  // star
      return in_star(u, v);
    case 7:  // horizontal bars
      return square <= kUnit && odd(v);
    case 8:  // vertical bars
      return square <= kUnit && odd(u);
    default:  // checkerboard
      return square <= kUnit && odd(u) != odd(v);
  }
}

/// Position, size and rotation of a shape. Lengths are in quarter pixels.
struct Placement {
  int shape, x, y, radius;
  int along, across;  ///< changes of u and v per quarter pixel, in 1/1024

  /// Sixteenths of pixel (px, py) that the shape covers.
  int coverage(int px, int py) const {
    const int left = 4 * px - x, top = 4 * py - y;
    // no shape reaches further than its square's corner
    if (std::max(std::abs(left), std::abs(top)) > radius * 3 / 2 + 4) return 0;
    int covered = 0;
    for (int dy = top; dy < top + 4; ++dy)
      for (int dx = left; dx < left + 4; ++dx)
        covered +=
            inside(shape, (along * dx + across * dy) / kUnit, (along * dy - across * dx) / kUnit);
    return covered;
  }
};

Placement random_placement(int shape, Stream& random) {
  const int radius = random.between(28, 44);
  // a rotation whose half angle has the tangent t / 64: rational, so no sine is needed
  const int t = random.between(-8, 8);
  const int64_t norm = int64_t{radius} * (64 * 64 + t * t);
  return {.shape = shape,
          .x = random.between(48, 80),
          .y = random.between(48, 80),
          .radius = radius,
          .along = static_cast<int>((64 * 64 - t * t) * int64_t{kUnit} * kUnit / norm),
          .across = static_cast<int>(128 * t * int64_t{kUnit} * kUnit / norm)};
}

}  // namespace

void draw_shape(uint32_t half, uint64_t id, std::span<uint8_t> planes) {
  Stream random(half, id);
  const Placement placement = random_placement(static_cast<int>(id % 10), random);

  // colours are independent of the class, but must differ visibly
  const Colour ground = random.colour();
  Colour paint = random.colour();
  const auto distance = [&] {
    int sum = 0;
    for (size_t c = 0; c < 3; ++c) sum += std::abs(paint[c] - ground[c]);
    return sum;
  };
  while (distance() < 160) paint = random.colour();

  std::array<std::array<Colour, kSide>, kSide> canvas;
  // the brightness of the background has a gradient
  const int slope_x = random.between(-2, 2), slope_y = random.between(-2, 2);
  for (int y = 0; y < kSide; ++y)
    for (int x = 0; x < kSide; ++x)
      for (size_t c = 0; c < 3; ++c)
        canvas[y][x][c] = ground[c] + slope_x * (x - kSide / 2) + slope_y * (y - kSide / 2);

  // clutter: small blocks in other colours, behind the shape
  for (int block = random.between(2, 5); block > 0; --block) {
    const Colour colour = random.colour();
    const int left = random.between(0, kSide - 2), top = random.between(0, kSide - 2);
    const int right = std::min(kSide, left + random.between(2, 6));
    const int bottom = std::min(kSide, top + random.between(2, 6));
    for (int y = top; y < bottom; ++y)
      for (int x = left; x < right; ++x) canvas[y][x] = colour;
  }

  for (int y = 0; y < kSide; ++y)
    for (int x = 0; x < kSide; ++x) {
      const int covered = placement.coverage(x, y);
      // noise: triangular, about +-24
      const uint32_t noise = random.word();
      for (size_t c = 0; c < 3; ++c) {
        const int grain = static_cast<int>((noise >> (10 * c)) & 31) +
                          static_cast<int>((noise >> (10 * c + 5)) & 31) - 31;
        const int value = (canvas[y][x][c] * (16 - covered) + paint[c] * covered) / 16 + grain;
        planes[c * kCifarPixels + y * kSide + x] = static_cast<uint8_t>(std::clamp(value, 0, 255));
      }
    }
}

}  // namespace tw
