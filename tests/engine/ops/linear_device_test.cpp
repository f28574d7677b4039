#include <gtest/gtest.h>

#include <thread>

#include "engine/ops/linear.h"
#include "tests/support/op_check.h"

namespace tw {
namespace {

using ops::Linear, ops::LinearShape;
using test::normal_tensor, test::OwnedTensor, test::relative_error, test::Scratch;

struct LinearCase {
  explicit LinearCase(const LinearShape& shape)
      : s(shape),
        x(normal_tensor({s.batch, s.in_features}, s.dtype, 1)),
        dy(normal_tensor({s.batch, s.out_features}, s.out_dtype, 2)),
        w(normal_tensor({s.out_features, s.in_features}, DType::f32, 3)),
        bias(normal_tensor({s.out_features}, DType::f32, 4)),
        y({s.batch, s.out_features}, s.out_dtype),
        dx({s.batch, s.in_features}, s.dtype),
        dw({s.out_features, s.in_features}, DType::f32),
        dbias({s.out_features}, DType::f32) {}

  void run(Context& ctx, Linear& linear, int rounds = 0) {
    const Scratch scratch(ctx, linear.scratch_bytes());
    const OwnedTensor packed({static_cast<int64_t>(linear.packed_bytes())}, DType::u8);
    ops::Transfers conversion;
    linear.pack(ctx, w, packed, conversion);
    ops::transfer(ctx, conversion);
    linear.forward(ctx, x, packed, bias, y);
    const OwnedTensor staged({static_cast<int64_t>(linear.staged_bytes())}, DType::u8);
    for (int round = 0; round <= rounds; ++round)
      linear.backward_weights(ctx, x, dy, dw, dbias, round > 0, staged);
    if (s.input_gradient) linear.backward_data(ctx, dy, packed, dx, staged);
  }

  void expect_close(double times = 1) const {
    const double tolerance = s.dtype == DType::f32 ? 1e-5 : 1e-2;
    const auto xs = x.get(), dys = dy.get(), ws = w.get(), biases = bias.get();
    std::vector<double> ry(dys.size()), rdx(xs.size()), rdw(ws.size()), rdbias(biases.size());
    for (int64_t n = 0; n < s.batch; ++n)
      for (int64_t o = 0; o < s.out_features; ++o) {
        const int64_t yi = n * s.out_features + o;
        ry[yi] += biases[o];
        rdbias[o] += times * dys[yi];
        for (int64_t i = 0; i < s.in_features; ++i) {
          const int64_t xi = n * s.in_features + i, wi = o * s.in_features + i;
          ry[yi] += xs[xi] * ws[wi];
          rdx[xi] += dys[yi] * ws[wi];
          rdw[wi] += times * xs[xi] * dys[yi];
        }
      }
    EXPECT_LE(relative_error(y.get(), ry), tolerance);
    EXPECT_LE(relative_error(dw.get(), rdw), tolerance);
    EXPECT_LE(relative_error(dbias.get(), rdbias), tolerance);
    if (s.input_gradient) {
      EXPECT_LE(relative_error(dx.get(), rdx), tolerance);
    }
  }

  LinearShape s;
  OwnedTensor x, dy, w, bias, y, dx, dw, dbias;
};

TEST(Linear, MatchesASumInDouble) {
  struct Types {
    DType in, out;
  };
  for (const Types t :
       {Types{DType::f32, DType::f32}, {DType::bf16, DType::f32}, {DType::bf16, DType::bf16}}) {
    for (const int threads : {1, 2})
      for (const int64_t batch : {1, 5})
        for (const int64_t in : {1, 100, 512})
          for (const int64_t out : {1, 10, 128}) {
            SCOPED_TRACE(fmt::format("{}->{} batch {} {}->{} threads {}", name(t.in), name(t.out),
                                     batch, in, out, threads));
            Context ctx(test::device(), threads);
            LinearCase c({.batch = batch,
                          .in_features = in,
                          .out_features = out,
                          .dtype = t.in,
                          .out_dtype = t.out,
                          .input_gradient = in != 100});
            c.run(ctx, *Linear::create(ctx, c.s));
            c.expect_close();
          }
  }
}

TEST(Linear, AccumulatesGradients) {
  Context ctx(test::device(), 2);
  LinearCase c({.batch = 6, .in_features = 48, .out_features = 10});
  c.run(ctx, *Linear::create(ctx, c.s), 2);
  c.expect_close(3);
}

TEST(Linear, RunsInAnotherThreadThanItsCreators) {
  Context ctx(test::device(), 2);
  LinearCase c({.batch = 6, .in_features = 512, .out_features = 10});
  const auto linear = Linear::create(ctx, c.s);
  std::thread([&] {
    ctx.bind_thread();
    c.run(ctx, *linear);
  }).join();
  c.expect_close();
}

TEST(Linear, RejectsInvalidArguments) {
  Context ctx(test::device());
  EXPECT_THROW(Linear::create(ctx, {.batch = 0, .in_features = 4, .out_features = 4}), UserError);
  EXPECT_THROW(Linear::create(ctx, {.batch = 1,
                                    .in_features = 4,
                                    .out_features = 4,
                                    .dtype = DType::f32,
                                    .out_dtype = DType::bf16}),
               UserError);
}

}  // namespace
}  // namespace tw
