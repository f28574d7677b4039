// ScaleCom compared with its formula, for every element and rank. The contract of all sparsifiers
// is in sparsifiers_ranks_test.cpp.

#include "tests/support/error_text.h"
#include "tests/support/ranks/ranks.h"
#include "tests/support/ranks/sgd_rig.h"
#include "tests/support/selection.h"

namespace tw::test {
namespace {

constexpr size_t kElements = 1000;

/// Integers: with a beta of one half all sums of a few steps are exact.
const GradientKind& wide() { return exact_kinds()[1]; }

Settings of_beta(const char* beta) {
  Settings settings = default_settings();
  settings.set("scalecom.beta", beta);
  return settings;
}

/// Every rank's residual, and the sum of a step.
struct Reference {
  explicit Reference(int ranks) : e(static_cast<size_t>(ranks), std::vector<float>(kElements)) {}

  void step(float beta, double density, uint64_t step) {
    const size_t ranks = e.size();
    std::vector<std::vector<float>> g(ranks, std::vector<float>(kElements)), u = g;
    for (size_t r = 0; r < ranks; ++r)
      for (size_t i = 0; i < kElements; ++i) {
        g[r][i] = SgdRig::gradient(wide(), static_cast<int>(r), step, i);
        u[r][i] = e[r][i] + g[r][i];
      }
    const size_t k = entries_to_keep(density, kElements);
    selected = sorted_top(u[step % ranks], k);
    if (density >= 1) {
      selected.resize(kElements);
      std::iota(selected.begin(), selected.end(), 0u);
    }
    sum.assign(kElements, 0);
    for (size_t r = 0; r < ranks; ++r) {
      std::vector<float> sent(kElements);
      for (const uint32_t i : selected) sum[i] += sent[i] = u[r][i];
      for (size_t i = 0; i < kElements; ++i)
        e[r][i] = (1 - beta) * e[r][i] + beta * (e[r][i] + g[r][i] - sent[i]);
    }
  }

  std::vector<std::vector<float>> e;
  std::vector<float> sum;
  std::vector<uint32_t> selected;
};

TEST(ScaleCom, FollowsItsFormula) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const auto& [text, beta] : {std::pair{"1", 1.0f}, {"0.5", 0.5f}, {"0.125", 0.125f}})
        for (const double density : {0.05, 0.0001, 1.0}) {
          const testing::ScopedTrace trace(__FILE__, __LINE__,
                                           fmt::format("beta {}, density {}", text, density));
          SgdRig rig(ctx, comm, kElements, {.sparsifier = "scalecom"}, of_beta(text));
          Reference reference(comm.size());
          for (uint64_t step = 0; step < 4; ++step) {
            const StepReport report = rig.step(wide(), {.step = step, .lr = 0, .density = density});
            reference.step(beta, density, step);
            EXPECT_TRUE(same_bits(rig.arena.gradients(), reference.sum)) << "step " << step;
            const auto& mine = reference.e[static_cast<size_t>(comm.rank())];
            size_t wrong = 0;
            for (size_t i = 0; i < kElements; ++i) wrong += rig.sgd->residual()[i] != mine[i];
            EXPECT_EQ(wrong, 0u) << "step " << step;
            if (density < 1) {
              EXPECT_EQ(report.nnz, reference.selected.size());
            }
          }
        }
    });
}

TEST(ScaleCom, ALeaderWithoutEntriesSendsNothingAndAllKeepTheirs) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    SgdRig rig(ctx, comm, kElements, {.sparsifier = "scalecom"});
    std::ranges::fill(rig.arena.gradients(), comm.rank() == 1 ? 0.0f : 2.0f);
    EXPECT_EQ(rig.sgd->step({.step = 1, .lr = 0, .density = 0.05}).nnz, 0u);
    EXPECT_EQ(std::ranges::count(rig.arena.gradients(), 0.0f), std::ssize(rig.arena.gradients()));
    EXPECT_EQ(std::ranges::count(rig.sgd->residual(), comm.rank() == 1 ? 0.0f : 2.0f),
              std::ssize(rig.sgd->residual()));
  });
}

TEST(ScaleCom, TensorsThatAreSummedWholeLeaveNoResidual) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    for (const char* beta : {"1", "0.5"}) {
      SgdRig rig(ctx, comm, kElements,
                 {.sparsifier = "dgc", .exchange = "scalecom", .momentum_before = false},
                 of_beta(beta));
      for (uint64_t step = 0; step < 4; ++step) {
        rig.step(wide(), {.step = step, .lr = 0, .density = 0.05});
        const Parameter& bias = rig.arena.parameters()[1];
        size_t wrong = 0, left = 0;
        for (size_t i = bias.offset; i < bias.offset + bias.length(); ++i) {
          float sum = 0;
          for (int rank = 0; rank < comm.size(); ++rank)
            sum += SgdRig::gradient(wide(), rank, step, i);
          wrong += rig.arena.gradients()[i] != sum;
          left += rig.sgd->residual()[i] != 0;
        }
        EXPECT_EQ(wrong, 0u) << "step " << step;
        EXPECT_EQ(left, 0u) << "step " << step;
      }
    }
  });
}

TEST(ScaleCom, SendsTheBytesOfIndicesAndValues) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const char* values : {"f32", "bf16"})
        // an eighth, then five eighths of the entries: more than twice k follow in a second message
        for (const float least : {6.0f, 3.0f, 0.5f}) {
          Settings settings = default_settings();
          settings.set("allreduce.values", values);
          settings.set("hardthreshold.lambda", fmt::format("{}", least));
          SgdRig rig(ctx, comm, kElements, {.sparsifier = "scalecom", .selector = "hardthreshold"},
                     settings);
          for (size_t i = 0; i < kElements; ++i)
            rig.arena.gradients()[i] = static_cast<float>((i + 1) % 8);
          const StepReport report = rig.sgd->step({.lr = 0, .density = 0.05});
          const uint64_t k = least == 6 ? 250 : least == 3 ? 625 : 875;
          EXPECT_EQ(report.nnz, k);
          const auto others = static_cast<uint64_t>(comm.size() - 1);
          const uint64_t each = values == std::string("f32") ? 4 : 2;
          EXPECT_EQ(sum_over_ranks(ctx, comm, report.bytes_sent),
                    others * (8 + 4 * k) + 2 * others * each * (k + 1));
          size_t wrong = 0;
          for (size_t i = 0; i < kElements; ++i) {
            const auto g = static_cast<float>((i + 1) % 8);
            wrong += rig.arena.gradients()[i] !=
                     (g >= least ? g * static_cast<float>(comm.size()) : 0.0f);
          }
          EXPECT_EQ(wrong, 0u);
        }
    });
}

TEST(ScaleCom, ExcludesMomentumCorrection) {
  const Settings settings = default_settings();
  const auto error = [&](const SgdConfig& config) {
    return error_text<UserError>([&] { resolve_sparsifier(config, settings); });
  };
  for (const SgdConfig& config : {SgdConfig{.sparsifier = "scalecom", .momentum_before = true},
                                  SgdConfig{.sparsifier = "dgc", .exchange = "scalecom"}})
    EXPECT_NE(error(config).find("exchange scalecom excludes momentum correction"),
              std::string::npos);
  EXPECT_THROW(of_beta("0"), UserError);
  EXPECT_THROW(of_beta("1.1"), UserError);
}

}  // namespace
}  // namespace tw::test
