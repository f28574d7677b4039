#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "engine/ops/conv2d.h"
#include "tests/support/error_text.h"
#include "tests/support/op_check.h"

namespace tw {
namespace {

using ops::Conv2d, ops::Conv2dShape;
using test::normal_tensor, test::OwnedTensor, test::relative_error, test::Scratch;

/// Calls body(y index, x index, w index) for every product of the convolution.
template <class Body>
void for_each_product(const Conv2dShape& s, const Body& body) {
  const int64_t k = s.kernel, p_end = s.out_height(), q_end = s.out_width();
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t p = 0; p < p_end; ++p)
      for (int64_t q = 0; q < q_end; ++q)
        for (int64_t r = 0; r < k; ++r)
          for (int64_t t = 0; t < k; ++t) {
            const int64_t h = p * s.stride + r - s.padding, w = q * s.stride + t - s.padding;
            if (h < 0 || h >= s.height || w < 0 || w >= s.width) continue;
            for (int64_t o = 0; o < s.out_channels; ++o)
              for (int64_t i = 0; i < s.in_channels; ++i)
                body(((n * p_end + p) * q_end + q) * s.out_channels + o,
                     ((n * s.height + h) * s.width + w) * s.in_channels + i,
                     ((o * k + r) * k + t) * s.in_channels + i);
          }
}

/// The operands of one convolution, its results in double, and its results from the op.
struct ConvCase {
  ConvCase(const Conv2dShape& shape, uint64_t seed = 1)
      : s(shape),
        x(normal_tensor(s.x(), s.dtype, seed)),
        dy(normal_tensor(s.y(), s.dtype, seed + 1)),
        w(normal_tensor(s.w(), DType::f32, seed + 2)),
        bias(normal_tensor({s.out_channels}, DType::f32, seed + 3)),
        y(s.y(), s.dtype),
        dx(s.x(), s.dtype),
        dw(s.w(), DType::f32),
        dbias({s.out_channels}, DType::f32) {}

  /// Runs everything; gradients are accumulated `rounds` times onto the first.
  void run(Context& ctx, int rounds = 0) {
    const auto conv = Conv2d::create(ctx, s);
    run(ctx, *conv, rounds);
  }
  void run(Context& ctx, Conv2d& conv, int rounds = 0) {
    const Scratch scratch(ctx, conv.scratch_bytes());
    const OwnedTensor packed({static_cast<int64_t>(conv.packed_bytes())}, DType::u8);
    ops::Transfers conversion;
    conv.pack(ctx, w, packed, conversion);
    ops::transfer(ctx, conversion);
    conv.forward(ctx, x, packed, bias, y);
    if (s.input_gradient) conv.backward_data(ctx, dy, packed, dx);
    // every other round leaves its delivery to the caller, as in a model
    const OwnedTensor staged({static_cast<int64_t>(conv.staged_bytes())}, DType::u8);
    for (int round = 0; round <= rounds; ++round) {
      ops::Transfers delivery;
      conv.backward_weights(ctx, x, dy, dw, dbias, round > 0, staged, {},
                            round % 2 == 0 ? &delivery : nullptr);
      ops::transfer(ctx, delivery);
    }
  }

  void expect_close(double tolerance, double times = 1) const {
    const auto xs = x.get(), dys = dy.get(), ws = w.get(), biases = bias.get();
    std::vector<double> ry(dys.size()), rdx(xs.size()), rdw(ws.size()), rdbias(biases.size());
    for_each_product(s, [&](int64_t yi, int64_t xi, int64_t wi) {
      ry[yi] += xs[xi] * ws[wi];
      rdx[xi] += dys[yi] * ws[wi];
      rdw[wi] += times * xs[xi] * dys[yi];
    });
    for (size_t i = 0; i < dys.size(); ++i) {
      if (s.bias) ry[i] += biases[i % biases.size()];
      rdbias[i % biases.size()] += times * dys[i];
    }
    EXPECT_LE(relative_error(y.get(), ry), tolerance);
    EXPECT_LE(relative_error(dw.get(), rdw), tolerance);
    if (s.input_gradient) {
      EXPECT_LE(relative_error(dx.get(), rdx), tolerance);
    }
    if (s.bias) {
      EXPECT_LE(relative_error(dbias.get(), rdbias), tolerance);
    }
  }

  Conv2dShape s;
  OwnedTensor x, dy, w, bias, y, dx, dw, dbias;
};

double tolerance(DType dtype) { return dtype == DType::f32 ? 1e-5 : 1e-2; }

std::string describe(const Conv2dShape& s, int threads) {
  return fmt::format("{} n{} {}x{} c{}->{} k{} s{} p{} bias {} threads {}", name(s.dtype), s.batch,
                     s.height, s.width, s.in_channels, s.out_channels, s.kernel, s.stride,
                     s.padding, s.bias, threads);
}

/// The gradient of the weights adds up over `rounds` more.
void expect_match(Context& ctx, const Conv2dShape& s, int rounds = 0) {
  SCOPED_TRACE(describe(s, ctx.threads()));
  ConvCase c(s);
  c.run(ctx, rounds);
  c.expect_close(tolerance(s.dtype), rounds + 1);
}

class Conv2dTest : public ::testing::TestWithParam<DType> {};

TEST_P(Conv2dTest, MatchesASumInDouble) {
  struct Size {
    int64_t batch, height, width, in, out;
  };
  for (const int threads : test::thread_counts({1, 2})) {
    Context ctx(test::device(), threads);
    for (const Size z : {Size{1, 7, 5, 1, 16},
                         {2, 8, 8, 3, 16},
                         {3, 9, 6, 16, 17},
                         {5, 5, 5, 17, 3},
                         {4, 6, 7, 16, 32},
                         {2, 2, 2, 64, 160}})
      for (const int64_t kernel : {1, 3, 5})
        for (const int64_t stride : {1, 2})
          for (int64_t padding = 0; padding < std::min<int64_t>(kernel, 3); ++padding) {
            if (z.height + 2 * padding < kernel || z.width + 2 * padding < kernel) continue;
            Conv2dShape s{.batch = z.batch,
                          .height = z.height,
                          .width = z.width,
                          .in_channels = z.in,
                          .out_channels = z.out,
                          .kernel = kernel,
                          .stride = stride,
                          .padding = padding,
                          .dtype = GetParam(),
                          .bias = kernel == 3};
            expect_match(ctx, s);
          }
  }
}

/// A convolution that keeps the sides and channels of square images.
Conv2dShape square(int64_t batch, int64_t side, int64_t channels, DType dtype) {
  return {.batch = batch,
          .height = side,
          .width = side,
          .in_channels = channels,
          .out_channels = channels,
          .dtype = dtype};
}

TEST_P(Conv2dTest, MatchesOnLayersOfResNetAndVgg) {
  for (const int threads : test::thread_counts({1, 2})) {
    Context ctx(test::device(), threads);
    for (const auto& [side, in, out, stride] : {std::array<int64_t, 4>{32, 3, 16, 1},
                                                {32, 16, 16, 1},
                                                {32, 16, 32, 2},
                                                {16, 32, 32, 1},
                                                {8, 64, 64, 1},
                                                {9, 64, 96, 1},
                                                {4, 128, 128, 1},
                                                {2, 128, 256, 1},
                                                {1, 64, 64, 1}}) {
      Conv2dShape s = square(side == 8 ? 5 : 3, side, in, GetParam());
      s.out_channels = out;
      s.stride = stride;
      s.input_gradient = in != 3;
      expect_match(ctx, s);
    }
  }
}

// images of one and of several groups of tiles, tiles cut by the edge, few and many channels
TEST_P(Conv2dTest, TilesOfAnySizeMatchASumInDouble) {
  struct Size {
    int64_t batch, height, width, in, out;
  };
  for (const int threads : test::thread_counts({1, 2, 3})) {
    Context ctx(test::device(), threads);
    for (const Size z : {Size{16, 4, 4, 16, 16},
                         {9, 8, 8, 32, 32},
                         {3, 13, 9, 48, 16},
                         {3, 10, 11, 80, 64},
                         {4, 6, 6, 16, 272}})
      for (int64_t padding = 0; padding < 3; ++padding)
        for (const bool bias : {false, true}) {
          const Conv2dShape s{.batch = z.batch,
                              .height = z.height,
                              .width = z.width,
                              .in_channels = z.in,
                              .out_channels = z.out,
                              .padding = padding,
                              .dtype = GetParam(),
                              .bias = bias};
          expect_match(ctx, s, 1);
        }
  }
}

// more threads than blocks of output channels, so that both tiles and blocks are dealt to them
TEST_P(Conv2dTest, ManyThreadsMatchASumInDouble) {
  for (const int threads : {4, 7}) {
    Context ctx(test::device(), threads);
    const Conv2dShape s{.batch = 5,
                        .height = 10,
                        .width = 9,
                        .in_channels = 160,
                        .out_channels = 32,
                        .dtype = GetParam(),
                        .bias = true};
    expect_match(ctx, s, 1);
  }
}

// sizes and channels that use the dense, Winograd, direct and split implementations (on the CPU,
// tests/engine/ops/cpu/conv2d_choice_test.cpp checks which)
constexpr std::array<std::array<int64_t, 2>, 6> kWays{
    {{2, 64}, {2, 160}, {12, 64}, {8, 40}, {6, 24}, {16, 16}}};

TEST_P(Conv2dTest, AccumulatesGradients) {
  Context ctx(test::device(), 2);
  for (const auto& [side, channels] : kWays) {
    for (const bool bias : {false, true}) {
      Conv2dShape s = square(3, side, channels, GetParam());
      s.bias = bias;
      expect_match(ctx, s, 2);
    }
  }
}

TEST_P(Conv2dTest, RepeatsBitForBit) {
  Context ctx(test::device(), 2);
  ctx.set_math({.deterministic = true});
  for (const auto& [side, channels] : kWays) {
    const Conv2dShape s = square(5, side, channels, GetParam());
    SCOPED_TRACE(describe(s, 2));
    ConvCase a(s), b(s);
    a.run(ctx);
    b.run(ctx);
    EXPECT_EQ(a.y.bits(), b.y.bits());
    EXPECT_EQ(a.dx.bits(), b.dx.bits());
    EXPECT_EQ(a.dw.bits(), b.dw.bits());
  }
}

TEST_P(Conv2dTest, RunsInAnotherThreadThanItsCreators) {
  Context ctx(test::device(), 2);
  for (const auto& [side, channels] : kWays) {
    const Conv2dShape s = square(2, side, channels, GetParam());
    ConvCase c(s);
    const auto conv = Conv2d::create(ctx, s);
    std::thread([&] {
      ctx.bind_thread();
      c.run(ctx, *conv);
    }).join();
    c.expect_close(tolerance(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Conv2dTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& param) { return std::string(name(param.param)); });

TEST(Conv2dErrors, NameTheImpossibleShape) {
  Context ctx(test::device());
  const Conv2dShape good{.batch = 1, .height = 4, .width = 4, .in_channels = 3, .out_channels = 8};
  const auto text = [&](auto change) {
    Conv2dShape s = good;
    change(s);
    return test::error_text<UserError>([&] { Conv2d::create(ctx, s); });
  };
  EXPECT_NO_THROW(Conv2d::create(ctx, good));
  EXPECT_NE(text([](auto& s) { s.height = 0; }).find("[conv2d] x is (N=1, H=0"), std::string::npos);
  EXPECT_NE(text([](auto& s) { s.kernel = 9; }).find("does not fit"), std::string::npos);
  EXPECT_NE(text([](auto& s) { s.padding = 3; }).find("padding 3"), std::string::npos);
  EXPECT_NE(text([](auto& s) { s.dtype = DType::u8; }).find("dtype u8"), std::string::npos);
}

TEST(Conv2dErrors, NameTheTensorOfWrongShape) {
  Context ctx(test::device());
  ConvCase c({.batch = 1, .height = 4, .width = 4, .in_channels = 3, .out_channels = 8});
  c.x = OwnedTensor({1, 4, 4, 4}, DType::f32);
  EXPECT_EQ(test::error_text<UserError>([&] { c.run(ctx); }),
            "[conv2d] x is f32 (1, 4, 4, 4); expected f32 (1, 4, 4, 3)");
}

}  // namespace
}  // namespace tw
