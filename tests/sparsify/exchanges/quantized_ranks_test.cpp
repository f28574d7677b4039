// The quantized dense exchange: its sums worked out in another way, bytes, draws, and faults. The
// contract of all sparsifiers, conservation among it, is in sparsifiers_ranks_test.cpp.

#include <cmath>

#include "tests/support/error_text.h"
#include "tests/support/ranks/ranks.h"
#include "tests/support/ranks/sgd_rig.h"
#include "tests/support/ranks/simulated.h"

namespace tw::test {
namespace {

constexpr size_t kOfVector = 1000;

Settings of_values(const std::string& values, const std::string& block = "64") {
  Settings settings = default_settings();
  settings.set("quantized.values", values);
  settings.set("quantized.block", block);
  return settings;
}

SgdConfig plain(bool error_feedback = true, uint64_t seed = 1) {
  return {.sparsifier = "quantized", .error_feedback = error_feedback, .seed = seed};
}

const GradientKind kNormal{
    "normal", [](uint32_t h, size_t) { return normal(h * 2654435761u, h ^ 0x5bd1e995u)[0]; }};

/// `part` as a message has it: multiples of a scale in blocks of 64.
std::vector<double> quantized(std::span<const double> part, const std::string& values) {
  std::vector<double> result;
  const int bits = values == "int8" ? 8 : values == "int4" ? 4 : 1;
  const int significant = bits == 8 ? 8 : 4;
  for (size_t begin = 0; begin < part.size(); begin += 64) {
    const auto block = part.subspan(begin, std::min<size_t>(64, part.size() - begin));
    double largest = 0, sum = 0;
    for (const double x : block) {
      largest = std::max(largest, std::fabs(x));
      sum += std::fabs(x);
    }
    const double levels = std::ldexp(1, bits - 1) - 1;
    const double exact = bits == 1 ? sum / static_cast<double>(block.size()) : largest / levels;
    const double unit = std::ldexp(1, std::ilogb(exact) + 1 - significant);
    const double scale = (bits == 1 ? std::floor(exact / unit) : std::ceil(exact / unit)) * unit;
    for (const double x : block)
      result.push_back(bits == 1 ? (x < 0 ? -scale : scale) : std::round(x / scale) * scale);
  }
  return result;
}

TEST(Quantized, SumsWhatTwoRoundingsLeave) {
  for (const int ranks : {2, 3, 4})
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const char* values : {"int8", "int4", "sign"}) {
        SgdRig rig(ctx, comm, kOfVector, plain(), of_values(values));
        rig.set_gradients(kNormal, 0);
        const std::vector<float> mine(rig.arena.gradients().begin(), rig.arena.gradients().end());
        GatheredBlocks all;
        allgather(comm, std::as_bytes(std::span(mine)), kOfVector * 4, all);
        rig.sgd->step({.lr = 0});

        size_t wrong = 0;
        const size_t parts = static_cast<size_t>(comm.size());
        for (size_t owner = 0; owner < parts; ++owner) {
          const size_t begin = kOfVector * owner / parts, end = kOfVector * (owner + 1) / parts;
          std::vector<double> sum(end - begin);
          for (size_t rank = 0; rank < parts; ++rank) {
            std::vector<float> floats(kOfVector);
            std::memcpy(floats.data(), all[static_cast<int>(rank)].data(), kOfVector * 4);
            std::vector<double> part(floats.begin() + static_cast<ptrdiff_t>(begin),
                                     floats.begin() + static_cast<ptrdiff_t>(end));
            if (rank != owner) part = quantized(part, values);
            for (size_t i = 0; i < part.size(); ++i) sum[i] += part[i];
          }
          const std::vector<double> expected = quantized(sum, values);
          for (size_t i = 0; i < sum.size(); ++i)
            wrong += std::fabs(rig.arena.gradients()[begin + i] - expected[i]) > 1e-5;
        }
        // a sum of f32 may be on the other side of a border between two multiples
        EXPECT_LE(wrong, 1u) << values;
      }
    });
}

TEST(Quantized, SendsABitOfEachValueAndTheScales) {
  for (const int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const auto& [values, bits] : {std::pair("int8", 8u), {"int4", 4u}, {"sign", 1u}}) {
        SgdRig rig(ctx, comm, kOfVector, plain(), of_values(values));
        const StepReport report = rig.step(kNormal, {});
        const uint64_t p = static_cast<uint64_t>(comm.size());
        uint64_t message = 0;
        for (uint64_t owner = 0; owner < p; ++owner) {
          const uint64_t n = kOfVector * (owner + 1) / p - kOfVector * owner / p;
          message += (n + 63) / 64 * 4 + (n * bits + 7) / 8;
        }
        EXPECT_EQ(sum_over_ranks(ctx, comm, report.bytes_sent),
                  2 * (p - 1) * message + 24 * p * (p - 1))
            << values;
        EXPECT_EQ(report.nnz, kOfVector);
      }
    });
}

// exactly in the first step, where the errors of short floats are short; later sums of residual and
// gradient are rounded
TEST(Quantized, LeavesInTheResidualsWhatTheSumLacks) {
  for (const int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const char* values : {"int8", "int4", "sign"})
        for (const GradientKind& kind : exact_kinds()) {
          SgdRig rig(ctx, comm, kOfVector, plain(), of_values(values));
          for (uint64_t step = 0; step < 5; ++step) {
            rig.set_gradients(kind, step);
            std::vector<float> u(rig.arena.gradients().begin(), rig.arena.gradients().end());
            for (size_t i = 0; i < kOfVector; ++i) u[i] += rig.sgd->residual()[i];
            rig.sgd->step({.step = step, .lr = 0});
            const auto total = summed(ctx, comm, u),
                       behind = summed(ctx, comm, rig.sgd->residual());
            double worst = 0, largest = 0;
            for (size_t i = 0; i < kOfVector; ++i) {
              largest = std::max(largest, std::fabs(double{total[i]}));
              worst = std::max(worst,
                               std::fabs(double{rig.arena.gradients()[i]} + behind[i] - total[i]));
            }
            EXPECT_LE(worst, step == 0 ? 0 : 2e-6 * largest)
                << values << ", " << kind.name << ", step " << step;
          }
        }
    });
}

/// The sum of 127, 0.5, 0.5, ... in blocks of 64 of the last rank and zeros of the others, rounded
/// by draws, for a vector with this offset in the model.
std::vector<float> drawn_sum(Context& ctx, Communicator& comm, size_t d, size_t offset) {
  const auto exchange = exchanges()
                            .find("quantized")
                            .value(of_values("int8"), {.offset = offset, .error_feedback = false});
  std::vector<float> gradient(d + 1), residual(d);
  for (size_t i = 0; i < d && comm.rank() == comm.size() - 1; ++i)
    gradient[i] = i % 64 == 0 ? 127.0f : 0.5f;
  Control control;
  exchange->run(ctx, comm,
                {.gradient = std::span(gradient).first(d),
                 .gradient_control = gradient,
                 .residual = residual,
                 .k = d},
                control);
  gradient.resize(d);
  return gradient;
}

TEST(Quantized, DrawsDifferByReceiverAndByVectorOfTheModel) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    constexpr size_t kPart = 128;
    const auto sum = drawn_sum(ctx, comm, 3 * kPart, 0);
    const auto second = sum.begin() + kPart;
    EXPECT_EQ(sum[0], 127);
    EXPECT_FALSE(std::equal(sum.begin(), second, second)) << "two owners have one rank's draws";
    EXPECT_EQ(drawn_sum(ctx, comm, 3 * kPart, 0), sum);
    EXPECT_NE(drawn_sum(ctx, comm, 3 * kPart, 3 * kPart), sum);
  });
}

TEST(Quantized, TakesTheSecondsOfTheModel) {
  for (const int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      const Settings settings = of_values("int8", "1024");
      const size_t d = size_t{1} << 17;
      const double model =
          exchanges().find("quantized").value(settings)->seconds(kLinkCost, comm.size(), d, 0);
      const auto steps = [&](uint64_t count) {
        return simulated(ctx, comm, [&](Communicator& link) {
          SgdRig rig(ctx, link, d, plain(), settings);
          for (uint64_t step = 0; step < count; ++step) rig.step(kNormal, {.step = step, .lr = 0});
        });
      };
      const double seconds = steps(2) - steps(1);
      // the last round of the allgather is short unless P is a power of two
      EXPECT_LE(seconds, 1.02 * model);
      EXPECT_GE(seconds, 0.9 * model);
    });
}

TEST(Quantized, WithoutErrorFeedbackTheMeanOfSumsIsTheSum) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    SgdRig rig(ctx, comm, kOfVector, plain(false), of_values("int4"));
    std::vector<double> means(kOfVector);
    std::vector<float> total;
    constexpr int kSteps = 400;
    for (uint64_t step = 0; step < kSteps; ++step) {
      rig.set_gradients(kNormal, 0);  // the same in each step
      if (step == 0) total = summed(ctx, comm, rig.arena.gradients());
      rig.sgd->step({.step = step, .lr = 0});
      for (size_t i = 0; i < kOfVector; ++i) means[i] += rig.arena.gradients()[i] / kSteps;
      EXPECT_EQ(std::ranges::count(rig.sgd->residual(), 0.0f), std::ssize(total));
    }
    // scales are at most a seventh of the largest sum, 3 x 4 say, and an error has at most
    // (1/4 + 2/4) of their squares; five standard errors
    double worst = 0;
    for (size_t i = 0; i < kOfVector; ++i) worst = std::max(worst, std::fabs(means[i] - total[i]));
    EXPECT_LT(worst, 5 * (12.0 / 7) * std::sqrt(0.75 / kSteps));
  });
}

TEST(Quantized, DrawsDependOnTheSeedAndTheStep) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    const auto sum = [&](bool error_feedback, uint64_t seed, uint64_t step) {
      SgdRig rig(ctx, comm, kOfVector, plain(error_feedback, seed), of_values("int4"));
      rig.set_gradients(kNormal, 0);
      rig.sgd->step({.step = step, .lr = 0});
      return std::vector<float>(rig.arena.gradients().begin(), rig.arena.gradients().end());
    };
    EXPECT_EQ(sum(false, 1, 0), sum(false, 1, 0));
    EXPECT_NE(sum(false, 1, 0), sum(false, 2, 0));
    EXPECT_NE(sum(false, 1, 0), sum(false, 1, 1));
    EXPECT_EQ(sum(true, 1, 0), sum(true, 2, 1));  // to nearest
  });
}

TEST(Quantized, ASumBeyondTheRangeOfF32EndsAllRanks) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    SgdRig rig(ctx, comm, kOfVector, plain(), of_values("int8"));
    std::ranges::fill(rig.arena.gradients(), 1.0f);
    rig.arena.gradients()[kOfVector - 1] = 3e38f;
    const std::string error = error_text<CollectiveFault>([&] { rig.sgd->step({.lr = 0}); });
    EXPECT_EQ(error, "[quantized] all gradients are finite, but a sum of them is not");
  });
}

}  // namespace
}  // namespace tw::test
