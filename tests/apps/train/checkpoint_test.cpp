// Checkpoints restored on another number of ranks, or with other options.
#include "apps/train/checkpoint.h"

#include <regex>

#include "apps/train/run_folder.h"
#include "comm/collectives/collectives.h"
#include "engine/io/safetensors.h"
#include "tests/support/error_text.h"
#include "tests/support/program.h"
#include "tests/support/ranks/ranks.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw::test {
namespace {

TrainConfig config_of(std::optional<Switch> momentum_correction) {
  TrainConfig config;
  config.settings = default_settings();
  config.model = "lenet";
  config.dataset = "shapes";
  config.sparsifier = "topk";
  config.momentum_correction = momentum_correction;
  return config;
}

struct Trainee {
  Trainee(Context& ctx, Communicator& comm, const TrainConfig& config)
      : model(config.model, {.classes = 10}) {
    model.plan(ctx, {.batch = 2});
    model.allocate(ctx, 1);
    sgd = std::make_unique<SyncSgd>(ctx, comm, model.arena(), config.sgd(), config.settings);
  }

  Model model;
  std::unique_ptr<SyncSgd> sgd;
};

/// The vector of the optimizer that has this name.
HostFloats own_vector(Optimizer& optimizer, const std::string& name) {
  for (NamedVector& own : optimizer.own_vectors())
    if (own.name == name) return std::move(own.values);
  throw std::logic_error("no vector " + name);
}

/// Saves a model of this many ranks whose residuals, if any, are 1 and whose statistics are those
/// of an untrained one; returns the checkpoint.
std::filesystem::path saved(const TempFolder& folder, const TrainConfig& config, int ranks,
                            const Position& at = {}) {
  run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
    Trainee trainee(ctx, comm, config);
    HostFloats residual = own_vector(*trainee.sgd, "residual");
    std::ranges::fill(residual.span(), config.no_error_feedback ? 0.0f : 1.0f);
    residual.write();
    save_checkpoint(comm, folder.path(), config, at, trainee.model, *trainee.sgd,
                    trainee.model.arena().statistic_values());
  });
  return *latest_checkpoint(folder.path());
}

/// Integers that differ between ranks: their sums are exact in any order.
float entry(int rank, size_t i) { return static_cast<float>((i * 7919 + rank * 104729) % 2003); }

TEST(Checkpoint, MeansOverRanksSurviveAnotherNumberOfRanks) {
  const TempFolder folder;
  TrainConfig config = config_of(std::nullopt);
  config.model = "resnet20";
  config.sparsifier = "dense";
  config.local_steps = 2;
  const auto on_ranks = [&](int ranks, const auto& body) {
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      Model model(config.model, {.classes = 10});
      model.plan(ctx, {.batch = 2});
      model.allocate(ctx, 1);
      const auto sgd = make_optimizer(ctx, comm, model.arena(), config.sgd(), config.settings);
      HostFloats momentum = own_vector(*sgd, "inner_momentum");
      HostFloats statistics = model.arena().host_statistics();
      body(comm, model, *sgd, momentum.span(), statistics.span());
    });
  };
  using Floats = std::span<float>;
  on_ranks(
      2, [&](Communicator& comm, Model& model, Optimizer& sgd, Floats momentum, Floats statistics) {
        for (size_t i = 0; i < momentum.size(); ++i) momentum[i] = entry(comm.rank(), i);
        for (size_t i = 0; i < statistics.size(); ++i) statistics[i] = entry(comm.rank() + 2, i);
        save_checkpoint(comm, folder.path(), config, {}, model, sgd, statistics);
      });
  for (const int ranks : {1, 4})
    on_ranks(ranks, [&](Communicator& comm, Model& model, Optimizer& sgd, Floats momentum,
                        Floats statistics) {
      TrainConfig asked = config;
      asked.workers = ranks;
      load_checkpoint(comm, *latest_checkpoint(folder.path()), asked, model, sgd);
      const auto expect_mean = [&](Floats values, int first) {
        ASSERT_GT(values.size(), 0u);
        for (size_t i = 0; i < values.size(); ++i)
          ASSERT_EQ(values[i], (entry(first, i) + entry(first + 1, i)) / 2) << i;
      };
      expect_mean(momentum, 0);
      expect_mean(statistics, 2);
    });
}

TEST(Checkpoint, ThePositionInAnEpochIsThatOfAsManyImages) {
  const TempFolder folder;
  const TrainConfig config = config_of(Switch::off);
  Position at;
  at.batch = 6;
  const std::filesystem::path checkpoint = saved(folder, config, 4, at);
  const auto batch_on = [&](int ranks, int64_t accumulate) {
    TrainConfig asked = config;
    asked.workers = ranks;
    asked.accumulate = accumulate;
    int64_t batch = 0;
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      Trainee now(ctx, comm, asked);
      const Resumed resumed = load_checkpoint(comm, checkpoint, asked, now.model, *now.sgd);
      if (comm.rank() == 0) batch = resumed.position.batch;
    });
    return batch;
  };
  EXPECT_EQ(batch_on(4, 1), 6);
  EXPECT_EQ(batch_on(1, 1), 24);
  EXPECT_EQ(batch_on(8, 1), 3);
  EXPECT_EQ(batch_on(2, 3), 4) << "three micro-batches a step";
}

/// The notice of a run with configuration `now` that continues one with configuration `before`.
std::string notice_of(const TrainConfig& before, const TrainConfig& now) {
  const TempFolder folder;
  const std::filesystem::path checkpoint = saved(folder, before, 1);
  std::string notice;
  run_ranks(1, [&](Context& ctx, Communicator& comm) {
    Trainee next(ctx, comm, now);
    notice = load_checkpoint(comm, checkpoint, now, next.model, *next.sgd).notice;
  });
  return notice;
}

TrainConfig with_selector(const std::string& selector, Scope scope) {
  TrainConfig config = config_of(Switch::off);
  config.selector = selector;
  config.scope = scope;
  return config;
}

/// The bytes of all states, one after the other.
std::vector<std::byte> state_bytes(SyncSgd& sgd) {
  std::vector<std::byte> all;
  for (const NamedState& state : sgd.states())
    all.insert(all.end(), state.bytes.begin(), state.bytes.end());
  return all;
}

TEST(Checkpoint, HoldsTheStateOfTheSelectorOfEveryRankAndSlice) {
  for (const char* selector : {"hardthreshold", "sidco"})
    for (const Scope scope : {Scope::model, Scope::layer}) {
      const TempFolder folder;
      const TrainConfig config = with_selector(selector, scope);
      run_ranks(2, [&](Context& ctx, Communicator& comm) {
        Trainee old(ctx, comm, config);
        const std::vector<std::byte> fresh = state_bytes(*old.sgd);
        for (uint64_t step = 0; step < 2; ++step) {
          const std::span<float> g = old.model.arena().gradients();
          for (size_t i = 0; i < g.size(); ++i) g[i] = entry(comm.rank(), i);
          old.sgd->step({.step = step, .density = 0.01});
        }
        const std::vector<std::byte> saved = state_bytes(*old.sgd);
        EXPECT_NE(saved, fresh) << selector;
        save_checkpoint(comm, folder.path(), config, {}, old.model, *old.sgd,
                        old.model.arena().statistic_values());
        barrier(comm);  // rank 0 names the folder last
        Trainee now(ctx, comm, config);
        load_checkpoint(comm, *latest_checkpoint(folder.path()), config, now.model, *now.sgd);
        EXPECT_EQ(state_bytes(*now.sgd), saved) << selector;
      });
    }
}

TEST(Checkpoint, AnotherTransportGivesNoNotice) {
  TrainConfig nccl = config_of(Switch::off);
  nccl.comm.transport = TransportChoice::nccl;
  EXPECT_EQ(notice_of(config_of(Switch::off), nccl), "");
}

TEST(Checkpoint, AnotherLearningRateGivesANotice) {
  TrainConfig slower = config_of(Switch::off);
  slower.lr = 0.01;
  EXPECT_EQ(notice_of(config_of(Switch::off), slower), "lr was 0.1, is now 0.01");
  slower.epochs = 20;
  EXPECT_EQ(notice_of(config_of(Switch::off), slower),
            "epochs was 10, is now 20; lr was 0.1, is now 0.01");
}

TEST(Checkpoint, AnotherExperimentIsAUserError) {
  const auto expect = [&](const char* said, const std::function<void(TrainConfig&)>& change) {
    TrainConfig other = config_of(Switch::off);
    change(other);
    const std::string text =
        error_text<UserError>([&] { notice_of(config_of(Switch::off), other); });
    EXPECT_NE(text.find(std::string(said) + "; a new --name with --resume PATH continues in a "
                                            "folder of its own"),
              std::string::npos)
        << text;
  };
  expect("density is 0.001 in the checkpoint, 0.01 in this run",
         [](TrainConfig& c) { c.density = 0.01; });
  expect("gtopk.rotate is \"false\" in the checkpoint, \"true\" in this run",
         [](TrainConfig& c) { c.settings.set("gtopk.rotate", "true"); });
}

TEST(Checkpoint, OneRankThatNobodyAskedForIsAUserError) {
  const TempFolder folder;
  const TrainConfig config = config_of(Switch::off);
  const std::filesystem::path checkpoint = saved(folder, config, 2);
  const std::string text =
      error_text<UserError>([&] { describe_checkpoint(checkpoint, config, 1); });
  EXPECT_NE(text.find(" is of 2 ranks: mpirun -n 2 train continues it; --workers 1 does on one"),
            std::string::npos)
      << text;
  TrainConfig asked = config;
  asked.workers = 1;
  EXPECT_EQ(describe_checkpoint(checkpoint, asked, 1).notice,
            "images of a step were 64, are now 32; 2 ranks became 1: residual is the mean of the 2 "
            "ranks, and the result differs from that of an uninterrupted run");
  TrainConfig dense = config;
  dense.sparsifier = "dense";
  const TempFolder other;
  dense.batch_size = 48;
  const std::filesystem::path of_dense = saved(other, dense, 2);
  dense.batch_size = 32;  // on three ranks as many images a step
  EXPECT_EQ(describe_checkpoint(of_dense, dense, 3).notice,
            "batch_size was 48, is now 32; 2 ranks became 3: the result differs from that of an "
            "uninterrupted run");
  TrainConfig other_link = config;
  other_link.settings.set("hierarchical.node", "2");  // which topk does not read
  EXPECT_EQ(describe_checkpoint(checkpoint, other_link, 2).notice, "");
}

TEST(Checkpoint, TheNoticeOfOtherRanksNamesWhatTheyTake) {
  const auto notice = [](const TrainConfig& config, int before, int now, bool validates = false,
                         const std::string& statistics = "average") {
    const TempFolder folder;
    TrainConfig asked = config;
    asked.workers = now;
    asked.eval_only = validates;
    asked.bn_stats = statistics;
    const std::string text = describe_checkpoint(saved(folder, config, before), asked, now).notice;
    static const std::regex images("^images of a step were [0-9]+, are now [0-9]+; ");
    return std::regex_replace(text.substr(0, text.find(", and the result differs")), images, "");
  };
  TrainConfig config = config_of(Switch::off);
  const std::string alone =
      "2 ranks became 3: the result differs from that of an uninterrupted run";
  EXPECT_EQ(notice(config, 2, 3), "2 ranks became 3: residual is the mean of the 2 ranks");
  EXPECT_EQ(notice(config, 1, 4), "1 rank became 4: residual is as on the one rank");
  EXPECT_EQ(notice(config, 2, 3, true), "");
  config.model = "resnet20";  // with batch norm
  EXPECT_EQ(notice(config, 2, 3),
            "2 ranks became 3: residual and batch-norm statistics are the mean of the 2 ranks");
  EXPECT_EQ(notice(config, 2, 3, true), "");
  EXPECT_TRUE(
      notice(config, 2, 3, true, "local")
          .ends_with("2 ranks became 3: batch-norm statistics are the mean of the 2 ranks"));
  config.no_error_feedback = true;
  EXPECT_EQ(notice(config, 1, 2), "1 rank became 2: batch-norm statistics are as on the one rank");
  config.model = "lenet";
  EXPECT_EQ(notice(config, 2, 3), alone);
  EXPECT_EQ(notice(config, 2, 3, true), "");
}

TEST(Checkpoint, ImpossibleCountsAreAUserError) {
  const TempFolder folder;
  const TrainConfig config = config_of(Switch::off);
  run_ranks(1, [&](Context& ctx, Communicator& comm) {
    Trainee trainee(ctx, comm, config);
    save_checkpoint(comm, folder.path(), config, {}, trainee.model, *trainee.sgd,
                    trainee.model.arena().statistic_values());
    const auto checkpoint = *latest_checkpoint(folder.path());
    using Wrong = std::pair<const char*, const char*>;  // key, value
    const auto whole = SafetensorsReader(checkpoint / "model.safetensors").metadata();
    for (const auto& [key, value] :
         {Wrong{"ranks", "0"}, Wrong{"ranks", "-1"}, Wrong{"ranks", "9000000000000"},
          Wrong{"step", "1.5"}, Wrong{"images", "2.48e26"}, Wrong{"batch_size", "1e30"}}) {
      SCOPED_TRACE(fmt::format("{} {}", key, value));
      {  // the same file, with another count and the right checksum
        const SafetensorsReader file(checkpoint / "model.safetensors");
        SafetensorsWriter changed;
        for (const auto& [name, tensor] : file.tensors()) changed.add(name, tensor);
        const std::regex number(fmt::format("\"{}\":-?\\d+", key));
        for (const auto& [name, text] : whole) {
          EXPECT_TRUE(name != "thinwire" || std::regex_search(text, number));
          changed.metadata(name,
                           std::regex_replace(text, number, fmt::format("\"{}\":{}", key, value)));
        }
        changed.write(checkpoint / "model.safetensors");
      }
      const std::string text = error_text<UserError>(
          [&] { load_checkpoint(comm, checkpoint, config, trainee.model, *trainee.sgd); });
      EXPECT_NE(text.find("damaged description"), text.npos) << text;
    }
  });
}

TEST(Checkpoint, AnotherSeedIsAUserError) {
  TrainConfig other = config_of(Switch::off);
  other.seed = 2;
  const std::string text = error_text<UserError>([&] { notice_of(config_of(Switch::off), other); });
  EXPECT_NE(text.find("seed is 1 in the checkpoint, 2 in this run"), std::string::npos) << text;
}

}  // namespace
}  // namespace tw::test
