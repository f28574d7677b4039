// evaluate.h: running statistics over many steps and ranks, beside PyTorch's
// (scripts/golden/cifar.py) and beside a computation in double.
#include "apps/train/evaluate.h"
#include "comm/collectives/collectives.h"
#include "comm/transports.h"
#include "engine/ops/sgd.h"
#include "tests/support/golden.h"

namespace tw::test {
namespace {

/// A rank of a run with golden weights. In step t, rank r of P has golden batch t P + r.
class GoldenRank {
 public:
  GoldenRank(Communicator& comm, const Json& golden)
      : comm_(comm), model_(golden["model"].get<std::string>(), {}) {
    model_.plan(ctx_, {.batch = golden["batch"].get<int64_t>(),
                       .mean = golden["mean"].get<std::vector<float>>(),
                       .deviation = golden["deviation"].get<std::vector<float>>()});
    model_.allocate(ctx_, 1);
    for (const Parameter& p : model_.arena().parameters())
      set_parameter(p, model_.arena().value(p));
    model_.refresh(ctx_);
  }

  /// SGD with the mean of the ranks' gradients.
  void step(int64_t t, float rate) {
    set_batch(model_, static_cast<uint32_t>(t * comm_.size() + comm_.rank()));
    model_.forward(pass_);
    if (rate == 0) return;
    model_.backward(pass_);
    allreduce(comm_, model_.arena().gradients());
    ops::sgd_update(ctx_,
                    {.lr = rate,
                     .momentum = 0,
                     .weight_decay = 0,
                     .nesterov = false,
                     .scale = 1.0f / static_cast<float>(comm_.size())},
                    {}, model_.arena().gradients(), {}, model_.arena().values());
    model_.refresh(ctx_);
  }

  Model& model() { return model_; }

 private:
  Communicator& comm_;
  Context ctx_{Device::cpu, 1};
  Model model_;
  PassArgs pass_{.ctx = ctx_};
};

/// The rms of the relative differences of all statistics; of a mean, relative to the deviation.
double error(const Model& model, std::span<const float> ours, const Json& golden) {
  double sum = 0;
  for (const Parameter& p : model.arena().statistics()) {
    const std::string layer = p.name.substr(0, p.name.rfind('.'));
    const auto expected = golden[p.name].get<std::vector<double>>();
    const auto variance = golden[layer + ".running_var"].get<std::vector<double>>();
    EXPECT_EQ(expected.size(), p.length()) << p.name;
    for (size_t i = 0; i < p.length(); ++i) {
      const double scale = p.name.ends_with("mean") ? std::sqrt(variance[i]) : variance[i];
      sum += std::pow((p.in(ours)[i] - expected[i]) / scale, 2);
    }
  }
  return std::sqrt(sum / static_cast<double>(ours.size()));
}

/// With a learning rate, rounding grows from step to step: PyTorch's own in f32 to 5e-5.
TEST(RunningStatistics, MatchPyTorchAfterFiftySteps) {
  const Json golden = read_golden("statistics");
  ASSERT_EQ(golden["runs"].size(), 4u);
  const Model model(golden["model"].get<std::string>(), {});
  for (const Json& run : golden["runs"]) {
    const int ranks = run["ranks"].get<int>();
    const auto rate = run["rate"].get<float>();
    SCOPED_TRACE(fmt::format("{} ranks, rate {}", ranks, rate));
    std::vector<float> statistics;
    run_on_threads(ranks, [&](Communicator& comm) {
      GoldenRank rank(comm, golden);
      for (int64_t t = 0; t < golden["steps"].get<int64_t>(); ++t) rank.step(t, rate);
      const std::vector<float> all = statistics_of_all(comm, rank.model(), true);
      if (comm.rank() == 0) statistics = all;
    });
    const double off = error(model, statistics, run["statistics"]);
    EXPECT_LE(off, rate == 0 ? 2e-6 : 3e-4);
    RecordProperty(fmt::format("error_{}_{}", ranks, rate), fmt::format("{:.1e}", off));
    for (const Json& other : golden["runs"])
      EXPECT_TRUE(other == run || error(model, statistics, other["statistics"]) > 1e-3);
  }
}

/// The mean and the unbiased variance of one channel of the first convolution on golden batch
/// `trial`, by the definition, in double. `kernel` is [3, 3, 3], the channel last.
std::pair<double, double> first_convolution(const Model& model, uint32_t trial,
                                            std::span<const float> kernel, const Json& golden) {
  constexpr int64_t kSide = 32;
  set_batch(model, trial);
  const auto mean = golden["mean"].get<std::vector<double>>();
  const auto deviation = golden["deviation"].get<std::vector<double>>();
  const auto pixels = model.images().as<uint8_t>();
  const int64_t images = model.images().shape[0];
  double sum = 0, squares = 0;
  for (int64_t n = 0; n < images; ++n)
    for (int64_t y = 0; y < kSide; ++y)
      for (int64_t x = 0; x < kSide; ++x) {
        double value = 0;
        for (int64_t i = 0; i < 27; ++i) {
          const int64_t c = i % 3, row = y + i / 9 - 1, column = x + i / 3 % 3 - 1;
          if (row < 0 || row >= kSide || column < 0 || column >= kSide) continue;
          const auto at = static_cast<size_t>(((n * kSide + row) * kSide + column) * 3 + c);
          const auto k = static_cast<size_t>(i), channel = static_cast<size_t>(c);
          value += kernel[k] * (pixels[at] / 255.0 - mean[channel]) / deviation[channel];
        }
        sum += value;
        squares += value * value;
      }
  const auto count = static_cast<double>(images * kSide * kSide);
  return {sum / count, (squares - sum * sum / count) / (count - 1)};
}

TEST(RunningStatistics, OfTheFirstBatchNormFollowTheirDefinition) {
  const Json golden = read_golden("statistics");
  constexpr int kRanks = 4;
  constexpr size_t kChannel = 5;
  run_on_threads(kRanks, [&](Communicator& comm) {
    GoldenRank rank(comm, golden);
    const ParameterArena& arena = rank.model().arena();
    const std::span<const float> kernel = arena.parameters()
                                              .front()
                                              .in(std::span<const float>(arena.values()))
                                              .subspan(27 * kChannel);
    double mean = 0, variance = 0;  // over the ranks
    for (uint32_t r = 0; r < kRanks && comm.rank() == 0; ++r) {
      double running_mean = 0, running_variance = 1;
      for (uint32_t t = 0; t < 50; ++t) {
        const auto [m, v] = first_convolution(rank.model(), t * kRanks + r, kernel, golden);
        running_mean = 0.9 * running_mean + 0.1 * m;
        running_variance = 0.9 * running_variance + 0.1 * v;
      }
      mean += running_mean / kRanks;
      variance += running_variance / kRanks;
    }
    for (int64_t t = 0; t < 50; ++t) rank.step(t, 0);
    const std::vector<float> all = statistics_of_all(comm, rank.model(), true);
    if (comm.rank() > 0) return;
    EXPECT_EQ(arena.parameters().front().name, "conv1.weight");
    const auto& statistics = arena.statistics();
    EXPECT_EQ(statistics[0].name, "bn1.running_mean");
    EXPECT_EQ(statistics[1].name, "bn1.running_var");
    EXPECT_NEAR(statistics[0].in(std::span(all))[kChannel], mean, 1e-5 * std::sqrt(variance));
    EXPECT_NEAR(statistics[1].in(std::span(all))[kChannel], variance, 1e-5 * variance);
  });
}

}  // namespace
}  // namespace tw::test
