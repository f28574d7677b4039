// PowerSGD compared with PyTorch's communication hook, and its properties on real matrices. The
// contract of all sparsifiers is in sparsifiers_ranks_test.cpp.

#include <cmath>
#include <fstream>

#include "tests/support/error_text.h"
#include "tests/support/golden.h"
#include "tests/support/ranks/ranks.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw::test {
namespace {

Settings of_rank(int64_t rank) {
  Settings settings = default_settings();
  settings.set("powersgd.rank", std::to_string(rank));
  return settings;
}

/// SyncSgd over tensors of the given shapes. Parameters stay as they are (lr 0).
struct Rig {
  Rig(Context& ctx, Communicator& comm, const std::vector<Shape>& shapes, const Settings& settings,
      SgdConfig config = {}) {
    for (size_t i = 0; i < shapes.size(); ++i)
      arena.add({.name = fmt::format("layer{}.weight", i), .shape = shapes[i]});
    arena.allocate(ctx, 1);
    config.sparsifier = "powersgd";
    sgd = std::make_unique<SyncSgd>(ctx, comm, arena, config, settings);
  }
  StepReport step(std::span<const float> gradient, uint64_t number = 0) {
    std::ranges::copy(gradient, arena.gradients().begin());
    return sgd->step({.step = number, .lr = 0});
  }
  std::span<float> sum() { return arena.gradients(); }

  ParameterArena arena;
  std::unique_ptr<SyncSgd> sgd;
};

std::vector<float> random_gradient(const Communicator& comm, uint64_t step, size_t d) {
  const Words words(fmt::format("gradient.{}.{}", comm.rank(), step));
  std::vector<float> g(d);
  for (size_t i = 0; i < d; ++i) g[i] = static_cast<float>(words.unit(i));
  return g;
}

/// The norm of a - factor b over the norm of a.
double relative_error(std::span<const float> a, std::span<const float> b, double factor = 1) {
  double error = 0, square = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += std::pow(a[i] - factor * b[i], 2);
    square += std::pow(a[i], 2);
  }
  return std::sqrt(error / square);
}

bool compressed(const Shape& shape, int64_t rank) {
  if (shape.rank() < 2) return false;
  const int64_t n = shape[0], m = shape.numel() / n;
  return (n + m) * std::min({rank, n, m}) < n * m;
}

TEST(PowerSgd, GivesTheMeansAndResidualsOfPyTorchsHook) {
  std::ifstream file(source_folder() / "tests/sparsify/golden/powersgd.json");
  ASSERT_TRUE(file);
  const Json golden = Json::parse(file);
  std::vector<Shape> shapes;
  for (const auto& shape : golden["shapes"])
    shapes.emplace_back(std::span<const int64_t>(shape.get<std::vector<int64_t>>()));
  for (const auto& [text, expected] : golden["factors"].items()) {
    const int64_t rank = std::stoll(text);
    run_ranks(2, [&](Context& ctx, Communicator& comm) {
      const testing::ScopedTrace trace(__FILE__, __LINE__, "rank of the factors: " + text);
      Rig rig(ctx, comm, shapes, of_rank(rank));
      const auto states = rig.sgd->states();
      std::vector<float> q;
      for (const auto& factor : expected["q"])
        for (const float value : factor.get<std::vector<float>>()) q.push_back(value);
      ASSERT_EQ(states.at(0).bytes.size(), q.size() * sizeof(float));
      std::ranges::copy(std::as_bytes(std::span(q)), states.at(0).bytes.begin());

      for (uint64_t step = 0; step < expected["means"].size(); ++step) {
        const Words words(fmt::format("powersgd.{}.{}", comm.rank(), step));
        std::vector<float> g(rig.arena.size());
        for (size_t i = 0; i < g.size(); ++i) g[i] = static_cast<float>(words.unit(i));
        rig.step(g, step);
        const auto mean = expected["means"][step].get<std::vector<float>>();
        for (const Parameter& p : rig.arena.parameters())
          EXPECT_LT(relative_error(p.in(std::span(mean)), p.in(rig.sum()), 0.5), 1e-4)
              << p.name << ", step " << step;
      }
      if (comm.rank() == 0) return;
      const auto residual = expected["residual"].get<std::vector<float>>();
      for (const Parameter& p : rig.arena.parameters()) {
        const std::span<float> ours = p.in(rig.sgd->residual());
        if (compressed(p.shape, rank)) {
          EXPECT_LT(relative_error(p.in(std::span(residual)), ours), 1e-4) << p.name;
        } else {  // the hook keeps u - mean, which adds up to zero over the ranks
          EXPECT_EQ(std::ranges::count(ours, 0.0f), std::ssize(ours)) << p.name;
        }
      }
    });
  }
}

const std::vector<Shape> kShapes{{20, 30}, {11}, {8, 3, 3, 5}, {6, 6}};
constexpr size_t kSize = 600 + 11 + 360 + 36;
// with rank 2: the matrices are 20 x 30, 8 x 45 and 6 x 6
constexpr size_t kP = 2 * (20 + 8 + 6), kQ = 2 * (30 + 45 + 6), kWhole = 11;

TEST(PowerSgd, LeavesInTheResidualWhatTheMeanLacks) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      Rig rig(ctx, comm, kShapes, of_rank(2));
      const float share = 1.0f / static_cast<float>(comm.size());
      for (uint64_t step = 0; step < 4; ++step) {
        std::vector<float> u = random_gradient(comm, step, kSize);
        const std::vector<float> g = u;
        for (size_t i = 0; i < kSize; ++i) u[i] += rig.sgd->residual()[i];
        rig.step(g, step);
        const auto put_in = summed(ctx, comm, u), behind = summed(ctx, comm, rig.sgd->residual());
        double error = 0;
        for (size_t i = 0; i < kSize; ++i)
          error = std::max(error, std::abs(double{put_in[i]} - rig.sum()[i] - behind[i]));
        EXPECT_LT(error, 2e-6 * comm.size()) << "step " << step;
        for (const Parameter& p : rig.arena.parameters())
          for (size_t i = p.offset; i < p.offset + p.length(); ++i)
            ASSERT_NEAR(rig.sgd->residual()[i],
                        compressed(p.shape, 2) ? u[i] - share * rig.sum()[i] : 0, 1e-6);
      }
    });
}

TEST(PowerSgd, SumsAMatrixOfTheirRankExactly) {
  for (int ranks : {1, 2, 5})
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const int64_t rank : {1, 2, 4}) {
        Rig rig(ctx, comm, {{20, 30}}, of_rank(rank));
        std::vector<float> g(600), total(600);
        for (size_t i = 0; i < g.size(); ++i) {
          double product = 0;
          for (int64_t c = 1; c <= rank; ++c)
            product += std::cos(static_cast<double>(c) * static_cast<double>(i / 30)) *
                       std::sin(static_cast<double>(c) * static_cast<double>(i % 30 + 1));
          g[i] = static_cast<float>(product * (comm.rank() + 1));
          total[i] = static_cast<float>(product * comm.size() * (comm.size() + 1) / 2);
        }
        rig.step(g);
        EXPECT_LT(relative_error(total, rig.sum()), 1e-5) << rank;
      }
    });
}

TEST(PowerSgd, TheWarmStartFindsTheLargestSingularVectors) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    // no error feedback: each step multiplies the same matrix
    Rig rig(ctx, comm, {{20, 30}}, of_rank(1), {.error_feedback = false});
    // 10 x one rank-one matrix + 1 x another, orthogonal to it
    std::vector<float> g(600);
    for (size_t i = 0; i < g.size(); ++i)
      g[i] = (i / 30 < 10 ? 1.0f : 0.0f) * (i % 30 < 15 ? 2.0f : 0.0f) +
             (i / 30 < 10 ? 0.0f : 1.0f) * (i % 30 < 15 ? 0.0f : 1.5f);
    std::vector<double> errors;
    for (uint64_t step = 0; step < 30; ++step) {
      rig.step(g, step);
      errors.push_back(relative_error(g, rig.sum(), 0.5));
    }
    // the best of rank one keeps the larger matrix
    const double best = std::sqrt(1.5 * 1.5 / (2.0 * 2.0 + 1.5 * 1.5));
    EXPECT_NEAR(errors.back(), best, 1e-5);
    EXPECT_GT(errors.front(), best + 1e-3);
  });
}

TEST(PowerSgd, AStepOfZerosDoesNotEndTheSearch) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    Rig rig(ctx, comm, {{20, 30}}, of_rank(2));
    rig.step(std::vector<float>(600));
    EXPECT_EQ(std::ranges::count(rig.sum(), 0.0f), 600);
    std::vector<float> g(600);
    for (size_t i = 0; i < g.size(); ++i) g[i] = std::sin(static_cast<float>(i % 30));
    rig.step(g, 1);
    EXPECT_LT(relative_error(g, rig.sum(), 1.0 / 3), 1e-5);
  });
}

TEST(PowerSgd, FactorsAreDrawnForEachTensorAndAnew) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    Rig rig(ctx, comm, {{20, 30}, {20, 30}}, of_rank(2)),
        later(ctx, comm, {{20, 30}, {20, 30}}, of_rank(2));
    std::vector<float> g = random_gradient(comm, 0, 600);
    g.insert(g.end(), g.begin(), g.begin() + 600);
    rig.step(g);
    EXPECT_FALSE(same_bits(rig.sum().first(600), rig.sum().subspan(600)));
    later.step(std::vector<float>(1200));
    later.step(g, 1);
    EXPECT_FALSE(same_bits(rig.sum(), later.sum()));
  });
}

// products of Q as it was summed would leave the range of float32 in the second step
TEST(PowerSgd, TheScaleOfTheGradientChangesNothingElse) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    for (const int exponent : {-90, 90}) {
      Rig plain(ctx, comm, kShapes, of_rank(2)), scaled(ctx, comm, kShapes, of_rank(2));
      for (uint64_t step = 0; step < 3; ++step) {
        std::vector<float> g = random_gradient(comm, step, kSize);
        plain.step(g, step);
        for (float& x : g) x = std::ldexp(x, exponent);
        scaled.step(g, step);
        size_t wrong = 0;
        for (size_t i = 0; i < kSize; ++i)
          wrong += scaled.sum()[i] != std::ldexp(plain.sum()[i], exponent);
        EXPECT_EQ(wrong, 0u) << exponent << " " << step;
      }
    }
  });
}

TEST(PowerSgd, BucketsAndOverlapDoNotChangeABit) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {  // of two ranks, sums have one order
    Rig model(ctx, comm, kShapes, of_rank(2));
    for (const size_t bytes : {size_t{0}, size_t{1600}, size_t{1} << 20})
      for (const bool overlap : {false, true}) {
        Rig layers(ctx, comm, kShapes, of_rank(2),
                   {.scope = Scope::layer, .bucket_bytes = bytes, .overlap = overlap});
        Rig whole(ctx, comm, kShapes, of_rank(2));
        for (uint64_t step = 0; step < 3; ++step) {
          whole.step(random_gradient(comm, step, kSize), step);
          layers.step(random_gradient(comm, step, kSize), step);
          EXPECT_TRUE(same_bits(whole.sum(), layers.sum())) << bytes << " " << step;
        }
        EXPECT_TRUE(same_bits(whole.sgd->residual(), layers.sgd->residual())) << bytes;
      }
  });
}

TEST(PowerSgd, AnotherSeedStartsFromAnotherFactor) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    Rig one(ctx, comm, kShapes, of_rank(2), {.seed = 1}),
        two(ctx, comm, kShapes, of_rank(2), {.seed = 2});
    one.step(random_gradient(comm, 0, kSize));
    two.step(random_gradient(comm, 0, kSize));
    EXPECT_FALSE(same_bits(one.sum(), two.sum()));
  });
}

TEST(PowerSgd, SendsTheBytesOfBothMessages) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const char* values : {"f32", "bf16"})
        for (const Scope scope : {Scope::model, Scope::layer}) {
          Settings settings = of_rank(2);
          settings.set("allreduce.values", values);
          const SgdConfig config{.sparsifier = "powersgd", .scope = scope, .bucket_bytes = 1600};
          Rig rig(ctx, comm, kShapes, settings, config);
          const StepReport report = rig.step(random_gradient(comm, 0, kSize));
          const uint64_t each = values == std::string("f32") ? 4 : 2;
          // layer scope: the last three tensors fill a bucket with the first in another
          const uint64_t status = scope == Scope::model ? 2 : 4;
          const uint64_t bytes =
              2 * static_cast<uint64_t>(comm.size() - 1) * each * (kP + kWhole + kQ + status);
          const uint64_t sent = sum_over_ranks(ctx, comm, report.bytes_sent);
          EXPECT_EQ(sent, bytes) << values << " " << static_cast<int>(scope);
          EXPECT_EQ(report.nnz, kP + kWhole + kQ);
          EXPECT_EQ(report.k, report.nnz);
          const SgdPlan plan(rig.arena, config, settings);
          EXPECT_EQ(plan.entries(1), report.nnz);
          EXPECT_EQ(plan.bytes_sent(comm.size(), 1), sent);
        }
    });
}

TEST(PowerSgd, TheFirstExchangesAreThoseOfDenseSgd) {
  for (int ranks : {1, 3})
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      Settings settings = of_rank(2);
      settings.set("powersgd.start", "2");
      Rig rig(ctx, comm, kShapes, settings), plain(ctx, comm, kShapes, of_rank(2));
      ParameterArena arena;
      arena.add({.name = "all", .shape = {static_cast<int64_t>(kSize)}});
      arena.allocate(ctx, 1);
      SyncSgd dense(ctx, comm, arena, {}, default_settings());
      rig.sgd->residual()[0] = 4;  // as of a run that goes on with this sparsifier
      for (const uint64_t step : {0, 1}) {
        std::vector<float> g = random_gradient(comm, step, kSize);
        const StepReport report = rig.step(g, step);
        if (step == 0) g[0] += 4;
        std::ranges::copy(g, arena.gradients().begin());
        const StepReport expected = dense.step({.step = step, .lr = 0});
        EXPECT_TRUE(same_bits(rig.sum(), arena.gradients())) << step;
        EXPECT_EQ(std::ranges::count(rig.sgd->residual(), 0.0f), std::ssize(g)) << step;
        EXPECT_EQ(report.nnz, kSize);
        EXPECT_EQ(report.k, kSize);
        EXPECT_EQ(report.bytes_sent, expected.bytes_sent);
      }
      // the third is the first that compresses
      const std::vector<float> g = random_gradient(comm, 2, kSize);
      EXPECT_EQ(rig.step(g, 2).nnz, kP + kWhole + kQ);
      plain.step(g);
      EXPECT_TRUE(same_bits(rig.sum(), plain.sum()));
      EXPECT_TRUE(same_bits(rig.sgd->residual(), plain.sgd->residual()));
      const size_t longest = std::max(kP + kWhole, kQ) + 1;
      EXPECT_EQ(SgdPlan(rig.arena, {.sparsifier = "powersgd"}, settings).optimizer_bytes,
                4 * (2 * kSize + kP + kQ + longest + kSize + 1));
    });
}

TEST(PowerSgd, ItsMemoryIsThatOfFactorsMessagesResidualAndMomentum) {
  run_ranks(1, [](Context& ctx, Communicator& comm) {
    Rig rig(ctx, comm, kShapes, of_rank(2));
    const SgdConfig config{.sparsifier = "powersgd"};
    const size_t longest = std::max(kP + kWhole, kQ) + 1;
    EXPECT_EQ(SgdPlan(rig.arena, config, of_rank(2)).optimizer_bytes,
              4 * (2 * kSize + kP + kQ + 2 * longest));
    EXPECT_EQ(rig.sgd->states().at(0).bytes.size(), 4 * kQ);
  });
}

TEST(PowerSgd, TensorsThatFactorsDoNotShortenAreSummedWhole) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    // 4 x 4 and 1 x 100 have as many or more elements in their factors
    Rig rig(ctx, comm, {{4, 4}, {1, 100}, {100, 1}}, of_rank(1000));
    const std::vector<float> g = random_gradient(comm, 0, 216);
    const StepReport report = rig.step(g);
    EXPECT_EQ(report.nnz, 216u);
    EXPECT_LT(relative_error(summed(ctx, comm, g), rig.sum()), 1e-6);
    EXPECT_TRUE(rig.sgd->states().empty());
  });
}

// as after a run that compressed it, resumed with factors of a higher rank
TEST(PowerSgd, ATensorSummedWholeSendsItsResidualOnce) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    Rig rig(ctx, comm, kShapes, of_rank(2));
    const size_t vector = 600;
    rig.sgd->residual()[vector] = 5;
    for (const float expected : {15.0f, 0.0f}) {
      rig.step(std::vector<float>(kSize));
      EXPECT_EQ(rig.sum()[vector], expected);
      EXPECT_EQ(rig.sgd->residual()[vector], 0);
    }
  });
}

TEST(PowerSgd, FactorsBeyondTheRangeOfF32EndAllRanks) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    Rig rig(ctx, comm, {{20, 30}}, of_rank(2));
    const std::string error =
        error_text<CollectiveFault>([&] { rig.step(std::vector<float>(600, 3e38f)); });
    EXPECT_NE(error.find("[powersgd] all gradients are finite"), std::string::npos) << error;
  });
}

TEST(PowerSgd, EitherFactorBeyondTheRangeOfF32EndsAllRanks) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    // the second step sums 2 x 1e38 x sqrt(30) into each element of P
    Rig first(ctx, comm, {{20, 30}}, of_rank(1));
    first.step(std::vector<float>(600, 1));
    EXPECT_THROW(first.step(std::vector<float>(600, 1e38f), 1), CollectiveFault);
    // at most 2 x 5e37 x sqrt(3) in P, but 2 x 5e37 x sqrt(1000) in Q
    Rig second(ctx, comm, {{1000, 3}}, of_rank(1));
    EXPECT_THROW(second.step(std::vector<float>(3000, 5e37f)), CollectiveFault);
  });
}

TEST(PowerSgd, TakesNoSelectorAndNoMomentumBefore) {
  const Settings settings = default_settings();
  const auto error = [&](const SgdConfig& config) {
    return error_text<UserError>([&] { resolve_sparsifier(config, settings); });
  };
  EXPECT_NE(error({.sparsifier = "powersgd", .selector = "topk"}).find("takes no selector (topk)"),
            std::string::npos);
  EXPECT_NE(error({.sparsifier = "powersgd", .momentum_before = true}).find("selects nothing"),
            std::string::npos);
  EXPECT_THROW(of_rank(0), UserError);
}

}  // namespace
}  // namespace tw::test
