// SyncSgd as a whole: its updates equal PyTorch's SGD on the exchanged mean; reports, overlap,
// errors.

#include <atomic>
#include <chrono>
#include <thread>

#include "comm/collectives/collectives.h"
#include "comm/subcommunicator.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks/ranks.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw {
namespace {

const GradientKind& wide_kind() { return exact_kinds()[1]; }

/// torch.optim.SGD, element by element; the middle parameter of the rig has no weight decay.
void reference_step(const SgdConfig& config, float lr, std::span<const float> mean,
                    std::span<float> m, std::span<float> w) {
  const size_t d = w.size(), first = d / 2, second = d / 2 + d / 4;
  const float momentum = static_cast<float>(config.momentum);
  for (size_t i = 0; i < d; ++i) {
    const bool decay = i < first || i >= second;
    const float g = mean[i] + (decay ? static_cast<float>(config.weight_decay) : 0.0f) * w[i];
    m[i] = momentum * m[i] + g;
    w[i] -= lr * (config.nesterov ? g + momentum * m[i] : m[i]);
  }
}

TEST(SyncSgd, MatchesTorchSgdOnTheMean) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const bool nesterov : {false, true})
        for (const double momentum : {0.9, 0.0}) {
          if (nesterov && momentum == 0) continue;
          const SgdConfig config{.momentum = momentum, .weight_decay = 0.01, .nesterov = nesterov};
          SgdRig rig(ctx, comm, 1000, config);
          std::vector<float> w(rig.arena.values().begin(), rig.arena.values().end());
          std::vector<float> m(w.size()), mean(w.size());
          for (uint64_t step = 0; step < 3; ++step) {
            rig.step(wide_kind(), {.step = step, .lr = 1e-3});
            for (size_t i = 0; i < w.size(); ++i) {
              mean[i] = 0;
              for (int rank = 0; rank < comm.size(); ++rank)
                mean[i] += SgdRig::gradient(wide_kind(), rank, step, i);
              mean[i] /= static_cast<float>(comm.size());
            }
            reference_step(config, 1e-3f, mean, m, w);
          }
          for (size_t i = 0; i < w.size(); ++i)
            EXPECT_NEAR(rig.arena.values()[i], w[i], 1e-5 * (1 + std::abs(w[i])));
          EXPECT_EQ(rig.sgd->momentum().size(), momentum == 0 ? 0 : w.size());
        }
    });
}

TEST(SyncSgd, DropsUnsentEntriesWithoutErrorFeedback) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const Variant& variant : variants()) {
        const SgdConfig config{.sparsifier = variant.sparsifier, .error_feedback = false};
        SgdRig rig(ctx, comm, 1000, config, variant.settings);
        SgdRig fresh(ctx, comm, 1000, config, variant.settings);
        rig.step(wide_kind(), {.step = 0, .lr = 0, .density = 0.05});
        for (float e : rig.sgd->residual()) EXPECT_EQ(e, 0) << variant.name;
        // the second step depends only on its own gradient, local momentum and exchange state
        std::ranges::copy(rig.sgd->local_momentum(), fresh.sgd->local_momentum().begin());
        const auto from = rig.sgd->states(), to = fresh.sgd->states();
        for (size_t i = 0; i < from.size(); ++i)
          std::ranges::copy(from[i].bytes, to[i].bytes.begin());
        rig.step(wide_kind(), {.step = 1, .lr = 0, .density = 0.05});
        fresh.step(wide_kind(), {.step = 1, .lr = 0, .density = 0.05});
        EXPECT_TRUE(same_bits(rig.arena.gradients(), fresh.arena.gradients())) << variant.name;
      }
    });
}

TEST(SyncSgd, ReportsEntriesBytesAndSeconds) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    SgdRig topk(ctx, comm, 1000, {.sparsifier = "topk"});
    const StepReport sparse = topk.step(wide_kind(), {.density = 0.01});
    EXPECT_EQ(sparse.k, 10u);
    EXPECT_EQ(sparse.nnz, 10u);
    EXPECT_EQ(sparse.bytes_sent, 24u + 80u);
    EXPECT_FALSE(sparse.stop);
    EXPECT_GT(sparse.sec_select + sparse.sec_exchange + sparse.sec_update, 0);

    SgdRig dense(ctx, comm, 1000, {.sparsifier = "dense"});
    const StepReport whole = dense.step(wide_kind(), {.density = 0.01});
    EXPECT_EQ(whole.k, 1000u);
    EXPECT_EQ(whole.nnz, 1000u);
  });
}

TEST(SyncSgd, DoesNotCountEntriesThatRoundToZero) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    Settings settings = default_settings();
    settings.set("wire.values", "fp16");
    SgdRig rig(ctx, comm, 1000, {.sparsifier = "topk"}, settings);
    std::ranges::fill(rig.arena.gradients(), 1e-12f);
    rig.arena.gradients()[7] = 1;
    const StepReport report = rig.sgd->step({.density = 0.01});
    EXPECT_EQ(report.k, 10u);
    EXPECT_EQ(report.nnz, 1u);
  });
}

TEST(SyncSgd, SendsTheEstimatedBytes) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const char* name : {"dense", "topk", "randk", "powersgd", "scalecom", "hierarchical"})
        for (const char* seed : {"worker", "shared"})
          for (const Scope scope : {Scope::model, Scope::layer}) {
            Settings settings = default_settings();
            settings.set("randk.seed", seed);
            settings.set("hierarchical.node", "2");
            if (std::string_view(seed) == "shared") settings.set("hierarchical.exchange", "gtopk");
            const SgdConfig config{.sparsifier = name, .scope = scope};
            SgdRig rig(ctx, comm, 1000, config, settings);
            const StepReport report = rig.step(rounding_kind(), {.density = 0.05});
            EXPECT_EQ(sum_over_ranks(ctx, comm, report.bytes_sent),
                      SgdPlan(rig.arena, config, settings).bytes_sent(comm.size(), 0.05))
                << name << " " << seed << " " << static_cast<int>(scope);
          }
    });
}

TEST(SyncSgd, SendsEveryEntryInTheEnd) {
  // one large gradient, then zeros: the residual is sent piece by piece, largest first
  run_ranks(1, [](Context& ctx, Communicator& comm) {
    SgdRig rig(ctx, comm, 1000, {.sparsifier = "topk", .momentum = 0, .weight_decay = 0});
    const std::vector<float> before(rig.arena.values().begin(), rig.arena.values().end());
    std::vector<float> total(1000);
    for (size_t i = 0; i < 1000; ++i) total[i] = SgdRig::gradient(wide_kind(), 0, 0, i);
    rig.step(wide_kind(), {.lr = 1, .density = 0.1});
    for (uint64_t step = 1; step < 10; ++step) {
      std::ranges::fill(rig.arena.gradients(), 0.0f);
      rig.sgd->step({.step = step, .lr = 1, .density = 0.1});
    }
    for (size_t i = 0; i < 1000; ++i) EXPECT_EQ(rig.arena.values()[i], before[i] - total[i]);
  });
}

/// Steps of a rig as backward would drive them: gradients become final from the last to the first.
void drive(SgdRig& rig, uint64_t steps, double density) {
  for (uint64_t step = 0; step < steps; ++step) {
    rig.set_gradients(rounding_kind(), step);
    rig.sgd->begin({.step = step, .lr = 0.1, .density = density});
    const auto& parameters = rig.arena.parameters();
    for (auto p = parameters.rbegin(); p != parameters.rend(); ++p) rig.sgd->gradient_ready(*p);
    rig.sgd->finish();
  }
}

TEST(SyncSgd, OverlapDoesNotChangeABit) {
  for (int ranks : {1, 3, 4})
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (const Variant& variant : variants())
        for (size_t bucket_bytes : {size_t{0}, size_t{1600}, size_t{1} << 20})
          for (double density : {0.05, 1.0}) {
            SgdConfig config{.sparsifier = variant.sparsifier, .scope = Scope::layer};
            config.bucket_bytes = bucket_bytes;
            SgdRig plain(ctx, comm, 1000, config, variant.settings);
            config.overlap = true;
            SgdRig overlapped(ctx, comm, 1000, config, variant.settings);
            drive(plain, 3, density);
            drive(overlapped, 3, density);
            EXPECT_TRUE(same_bits(plain.arena.values(), overlapped.arena.values())) << variant.name;
            EXPECT_TRUE(same_bits(plain.sgd->residual(), overlapped.sgd->residual()))
                << variant.name;
          }
    });
}

/// A communicator of all ranks that counts the finished exchanges of this one, for another thread.
class Watched : public Subcommunicator {
 public:
  explicit Watched(Communicator& pair) : Subcommunicator(pair, {0, 1}) {}
  std::atomic<int> ended = 0;

 protected:
  size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) override {
    const size_t received = Subcommunicator::do_exchange(ctx, to, out, from, in);
    ++ended;
    return received;
  }
};

TEST(SyncSgd, OverlappedExchangesStartBeforeBackwardEnds) {
  run_ranks(2, [](Context& ctx, Communicator& pair) {
    Watched comm(pair);
    SgdConfig config{
        .sparsifier = "dense", .scope = Scope::layer, .bucket_bytes = 0, .overlap = true};
    SgdRig rig(ctx, comm, 1000, config);
    comm.ended = 0;  // the ranks told each other their machines
    rig.set_gradients(wide_kind(), 0);
    rig.sgd->begin({.lr = 0});
    rig.sgd->gradient_ready(rig.arena.parameters().back());
    // the last tensor is summed while the others' gradients are not final yet
    constexpr int kRingOfTwo = 2;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (comm.ended < kRingOfTwo && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    EXPECT_EQ(comm.ended, kRingOfTwo);
    float sum = 0;
    for (int rank = 0; rank < 2; ++rank) sum += SgdRig::gradient(wide_kind(), rank, 0, 999);
    EXPECT_EQ(rig.arena.gradients().back(), sum);
    rig.sgd->finish();
  });
}

TEST(SyncSgd, AMeasuredWaitIsTheDelayOfTheLastRankAndChangesNoBit) {
  Settings settings = default_settings();
  settings.set("hierarchical.node", "2");
  for (const char* sparsifier : {"dense", "topk", "dgc", "hierarchical", "bsp"})
    run_ranks(3, [&](Context& ctx, Communicator& comm) {
      SgdConfig config{.sparsifier = sparsifier};
      SgdRig plain(ctx, comm, 1000, config, settings);
      config.barrier_comm = &comm;
      SgdRig measured(ctx, comm, 1000, config, settings);
      const StepInput input{.density = 0.01};
      EXPECT_EQ(plain.step(wide_kind(), input).sec_wait, 0);
      constexpr double kDelay = 0.2;
      const auto waited_for_rank_1 = [&] {
        barrier(ctx, comm);
        if (comm.rank() == 1) std::this_thread::sleep_for(std::chrono::duration<double>(kDelay));
        const StepReport report = measured.step(wide_kind(), input);
        EXPECT_GE(report.sec_exchange, report.sec_wait) << sparsifier;
        const bool counted_elsewhere = report.sec_exchange - report.sec_wait > 0.5 * kDelay;
        return !counted_elsewhere && (comm.rank() == 1 || report.sec_wait >= 0.8 * kDelay);
      };
      bool all_waited = all_ranks(ctx, comm, waited_for_rank_1());
      EXPECT_TRUE(same_bits(plain.arena.values(), measured.arena.values())) << sparsifier;
      // repeats, because the machine may be busy for a moment
      for (int round = 1; round < 20 && !all_waited; ++round)
        all_waited = all_ranks(ctx, comm, waited_for_rank_1());
      EXPECT_TRUE(all_waited) << sparsifier;
    });
}

TEST(SyncSgd, EverySelectorWorksWithEveryExchange) {
  for (int ranks : {1, 3, 4})
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      constexpr size_t d = 1000;
      Settings settings = default_settings();
      settings.set("gtopk.put_back", "conserve");  // the default may lose entries
      GatheredBlocks everywhere;
      for (const std::string& selector : selectors().names())
        for (const std::string& exchange : exchanges().names()) {
          const ExchangeEntry& entry = exchanges().find(exchange).value;
          if (entry.dense || entry.needs_shared_indices(default_settings())) continue;
          SCOPED_TRACE(selector + " with " + exchange);
          SgdRig rig(ctx, comm, d,
                     {.sparsifier = "topk", .selector = selector, .exchange = exchange}, settings);
          for (uint64_t step = 0; step < 3; ++step) {
            rig.set_gradients(wide_kind(), step);
            std::vector<float> before(rig.sgd->residual().begin(), rig.sgd->residual().end());
            for (size_t i = 0; i < d; ++i) before[i] += rig.arena.gradients()[i];
            rig.sgd->step({.step = step, .density = 0.05});
            const auto all = summed(ctx, comm, before);
            const auto behind = summed(ctx, comm, rig.sgd->residual());
            size_t lost = 0;
            for (size_t i = 0; i < d; ++i) lost += rig.arena.gradients()[i] + behind[i] != all[i];
            EXPECT_EQ(lost, 0u) << "step " << step;
            const auto values = std::as_bytes(rig.arena.values());
            allgather(ctx, comm, values, values.size(), everywhere);
            EXPECT_TRUE(std::ranges::equal(everywhere[0], values)) << "step " << step;
          }
        }
    });
}

TEST(SyncSgd, LayerScopeSelectsFromEachTensorByItself) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    SgdRig rig(ctx, comm, 1000, {.sparsifier = "topk", .scope = Scope::layer});
    const StepReport report = rig.step(wide_kind(), {.density = 0.01});
    EXPECT_EQ(report.k, 5u + 2u + 2u);
    EXPECT_EQ(report.nnz, 9u);
  });
}

TEST(SyncSgd, LayerScopeDrawsOtherPositionsInEachTensor) {
  for (const size_t bucket_bytes : {size_t{0}, size_t{1} << 20})
    run_ranks(1, [&](Context& ctx, Communicator& comm) {
      SgdRig rig(ctx, comm, 1000,
                 {.sparsifier = "randk", .scope = Scope::layer, .bucket_bytes = bucket_bytes});
      rig.step(wide_kind(), {.density = 0.1});
      const std::span<const float> sum = rig.arena.gradients();
      size_t same = 0;  // of the two tensors of 250 elements
      for (size_t i = 500; i < 750; ++i) same += sum[i] != 0 && sum[i + 250] != 0;
      EXPECT_LT(same, 15u) << "bucket_bytes = " << bucket_bytes;
    });
}

TEST(SyncSgd, LayerScopeKeepsAStateOfTheSelectorForEachTensor) {
  for (const size_t bucket_bytes : {size_t{0}, size_t{1} << 20})
    run_ranks(2, [&](Context& ctx, Communicator& comm) {
      const SgdConfig config{
          .sparsifier = "hardthreshold", .scope = Scope::layer, .bucket_bytes = bucket_bytes};
      SgdRig rig(ctx, comm, 1000, config);
      // the second step sends the same entries, since they reach the thresholds of the first
      for (uint64_t step = 0; step < 2; ++step) {
        rig.set_gradients(wide_kind(), 0);
        for (size_t i = 500; i < 750; ++i) rig.arena.gradients()[i] *= 4096;
        std::ranges::fill(rig.sgd->residual(), 0.0f);
        EXPECT_EQ(rig.sgd->step({.step = step, .density = 0.01}).nnz, 5u + 2u + 2u);
      }
      ASSERT_EQ(rig.sgd->states().size(), 1u);
      EXPECT_EQ(rig.sgd->states()[0].name, "selector.hardthreshold");
      EXPECT_EQ(rig.sgd->states()[0].bytes.size(), 3 * sizeof(float));
    });
}

TEST(SyncSgd, AtDensityOneWithShortTensorsApartTheSumIsThatOfDense) {
  Settings settings = default_settings();
  settings.set("randk.seed", "shared");
  for (const auto& [selector, exchange] : {std::pair("randk", "shared"), {"topk", "scalecom"}})
    run_ranks(3, [&](Context& ctx, Communicator& comm) {
      SgdRig dense(ctx, comm, 100, {}), rig(ctx, comm, 100,
                                            {.sparsifier = "dgc",
                                             .selector = selector,
                                             .exchange = exchange,
                                             .momentum_before = false},
                                            settings);
      dense.step(exact_kinds()[0], {.density = 1});  // gradients with zeros
      rig.step(exact_kinds()[0], {.density = 1});
      EXPECT_TRUE(same_bits(rig.arena.values(), dense.arena.values())) << exchange;
    });
}

TEST(SyncSgd, RejectsPartsThatDoNotFit) {
  run_ranks(1, [](Context& ctx, Communicator& comm) {
    const auto refused = [&](const SgdConfig& config, const std::string& why) {
      const auto error = test::error_text<UserError>([&] { SgdRig(ctx, comm, 10, config); });
      EXPECT_NE(error.find(why), std::string::npos) << error;
    };
    refused({.sparsifier = "dense", .selector = "topk"}, "takes no selector (topk)");
    refused({.sparsifier = "dense", .exchange = "allgather"}, "needs a selector");
    refused({.sparsifier = "topk", .overlap = true}, "add --scope layer");
    refused({.sparsifier = "dense", .momentum_before = true}, "dense selects nothing");
    refused({.sparsifier = "topkk"}, "nearest is \"topk\"");
    refused({.sparsifier = "topk", .exchange = "algather"}, "nearest is \"allgather\"");
  });
}

TEST(SyncSgd, RejectsMoreParametersThanA32BitIndexCounts) {
  run_ranks(1, [](Context& ctx, Communicator& comm) {
    ParameterArena arena;
    arena.add({.name = "huge", .shape = {int64_t{UINT32_MAX}}});
    const auto error = test::error_text<UserError>(
        [&] { SyncSgd(ctx, comm, arena, {.sparsifier = "topk"}, default_settings()); });
    EXPECT_NE(error.find("the model has 4294967295 parameters"), std::string::npos) << error;
  });
}

}  // namespace
}  // namespace tw
