// The state of the optimizer in a run that continues on another number of ranks, with another
// method or with frozen tensors. What is owed stays the same: an update that sends everything makes
// the same change before and after.
#include <cmath>

#include "apps/train/checkpoint.h"
#include "apps/train/run_folder.h"
#include "comm/collectives/collectives.h"
#include "engine/io/safetensors.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "sparsify/exchange.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks/ranks.h"
#include "tests/support/ranks/sgd_rig.h"
#include "tests/support/temp_folder.h"

namespace tw::test {
namespace {

constexpr const char* kTiny = "two_layers";

/// Two matrices that PowerSGD compresses, and their biases.
LayerPtr two_layers(ParameterArena& arena, const ModelSpec& spec) {
  auto net = std::make_unique<layers::Sequential>();
  net->add<layers::Linear>(arena, {.name = "fc1", .in = spec.image, .out = 12});
  net->add<layers::Linear>(arena, {.name = "fc2", .in = {12}, .out = spec.classes, .logits = true});
  return net;
}
const bool two_layers_registered = models().add({kTiny, "for these tests", two_layers});

/// Powers of two, so that products with them are exact.
constexpr float kMomentum = 0.5f, kRate = 0.25f;

TrainConfig tiny_method(const std::string& sparsifier) {
  TrainConfig config;
  config.settings = default_settings();
  config.settings.set("hierarchical.node", "2");
  config.model = kTiny;
  config.dataset = "shapes";
  config.sparsifier = sparsifier;
  config.momentum = kMomentum;
  config.weight_decay = 0;
  config.workers = 1;
  config.branches = true;
  return config;
}

std::string text_of_method(const TrainConfig& config) {
  return fmt::format("{} momentum-correction={} nesterov={} outer={} node={}", config.sparsifier,
                     config.momentum_correction ? word(*config.momentum_correction) : "auto",
                     config.nesterov, config.outer_momentum,
                     config.settings.text("hierarchical.node"));
}

bool corrects_momentum(const TrainConfig& config) {
  return resolve_sparsifier(config.sgd(), config.settings).momentum_before;
}
bool keeps_owed(const TrainConfig& config) {
  return keeps_residual(resolve_sparsifier(config.sgd(), config.settings));
}

/// Every sparsifier, also with momentum correction (and Nesterov momentum) where that is possible;
/// a few without Nesterov momentum or with local steps; hierarchical also with machines as nodes.
std::vector<TrainConfig> all_methods() {
  std::vector<TrainConfig> all;
  const auto add = [&](const std::string& name, bool corrected, bool nesterov, bool local) {
    TrainConfig config = tiny_method(name);
    config.momentum_correction = corrected ? Switch::on : Switch::off;
    config.nesterov = nesterov;
    config.outer_momentum = local ? kMomentum : 0;
    try {
      resolve_sparsifier(config.sgd(), config.settings);
      all.push_back(config);
    } catch (const UserError&) {  // parts that exclude each other
    }
  };
  for (const auto& [name, entry] : sparsifiers().entries())
    for (const bool corrected : {false, true}) add(name, corrected, corrected, false);
  for (const char* name : {"topk", "dgc", "hierarchical"}) {
    add(name, true, false, false);
    for (const bool corrected : {false, true}) add(name, corrected, true, true);
  }
  all.push_back(tiny_method("hierarchical"));
  all.back().settings.set("hierarchical.node", "0");
  return all;
}

constexpr int kMachines = 3;  // on which the ranks run in turn

struct TinyTrainee {
  TinyTrainee(Context& ctx, Communicator& comm, const TrainConfig& config)
      : model(kTiny, {.image = {4, 4, 1}, .classes = 10}), config_(config) {
    model.plan(ctx, {.batch = 2, .mean = {0}, .deviation = {1}});
    if (!config.freeze.empty()) model.arena().freeze(config.freeze);
    model.allocate(ctx, 1);
    sgd = make_optimizer(ctx, comm, model.arena(), config.sgd(), config.settings);
  }

  /// A step with gradients that differ between ranks; those of frozen parameters are 0.
  void step(int rank, uint64_t step, double density) {
    for (const Parameter& p : model.arena().parameters())
      for (size_t i = p.offset; i < p.offset + p.length(); ++i) {
        const float g = SgdRig::gradient(exact_kinds()[1], rank, step, i) / 1024;
        model.arena().gradients()[i] = p.frozen ? 0 : g;
      }
    sgd->step({.step = step, .lr = kRate, .density = density, .last = true});
  }

  /// The change of parameters at 0 in a step without gradients that sends everything.
  std::vector<float> last_change(uint64_t step) {
    std::ranges::fill(model.arena().gradients(), 0.0f);
    std::ranges::fill(model.arena().values(), 0.0f);
    // with local steps, nothing but the exchange changes the parameters
    sgd->step({.step = step, .lr = config_.is_local() ? 0.0 : 1.0, .density = 1, .last = true});
    return {model.arena().values().begin(), model.arena().values().end()};
  }

  std::vector<float> vector(const std::string& name) {
    for (const auto& vectors : {sgd->own_vectors(), sgd->common_vectors()})
      for (const NamedVector& one : vectors)
        if (one.name == name && !one.values.span().empty())
          return {one.values.span().begin(), one.values.span().end()};
    return std::vector<float>(model.arena().size());
  }

  /// The same change, from the state of all ranks: what is owed once, and momentum m times.
  std::vector<float> change_of_state(Context& ctx, Communicator& comm) {
    const std::vector<float> e = summed(ctx, comm, vector("residual")),
                             q = summed(ctx, comm, vector("local_momentum")),
                             v = vector("momentum");
    std::vector<float> change(e.size());
    // Nesterov momentum after the mean applies a gradient 1 + m times
    const bool nesterov = config_.nesterov;
    const float once = nesterov && !corrects_momentum(config_) ? 1 + kMomentum : 1,
                after = nesterov ? kMomentum * kMomentum : kMomentum;
    for (size_t i = 0; i < e.size(); ++i)
      change[i] =
          -(once * e[i] + kMomentum * q[i]) / static_cast<float>(comm.size()) - after * v[i];
    return change;
  }

  Model model;
  std::unique_ptr<Optimizer> sgd;

 private:
  TrainConfig config_;
};

std::filesystem::path save_tiny(const TempFolder& folder, Communicator& comm,
                                const TrainConfig& config, TinyTrainee& trainee) {
  Position at;
  at.step = 3;
  save_checkpoint(comm, folder.path(), config, at, trainee.model, *trainee.sgd,
                  trainee.model.arena().statistic_values());
  barrier(comm);
  return folder / checkpoint_name(at.step);
}

/// Trains three steps and saves them; returns the change of a step that sends everything. `owes`:
/// whether some rank has a residual, which quantized sums of one rank leave empty.
std::vector<float> train_and_save(const TempFolder& folder, const TrainConfig& config, int ranks,
                                  bool* owes = nullptr) {
  std::vector<float> change;
  run_ranks(ranks, [&](Context& ctx, Communicator& plain) {
    OnMachines comm(plain, kMachines);
    TinyTrainee trainee(ctx, comm, config);
    for (uint64_t step = 0; step < 3; ++step) trainee.step(comm.rank(), step, 0.05);
    const std::vector<float> state = trainee.change_of_state(ctx, comm);
    const std::vector<float> residual = summed(ctx, comm, trainee.vector("residual"));
    save_tiny(folder, comm, config, trainee);
    if (comm.rank() > 0) return;
    change = state;
    if (owes) *owes = std::ranges::any_of(residual, [](float e) { return e != 0; });
  });
  return change;
}

void expect_same_change(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  float most = 0;
  for (const float x : expected) most = std::max(most, std::abs(x));
  EXPECT_GT(most, 0);
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 2e-6f * most) << i;
}

/// Continues the checkpoint with `now` on this many ranks; the change of a step that sends
/// everything, and the notice.
std::vector<float> resumed_change(const TempFolder& folder, const TrainConfig& now, int ranks,
                                  std::string& notice) {
  std::vector<float> change;
  run_ranks(ranks, [&](Context& ctx, Communicator& plain) {
    OnMachines comm(plain, kMachines);
    TinyTrainee trainee(ctx, comm, now);
    const Resumed resumed =
        load_checkpoint(comm, folder / checkpoint_name(3), now, trainee.model, *trainee.sgd);
    const bool factors = keeps_owed(now) && !trainee.sgd->selects();  // never sends everything
    const std::vector<float> mine =
        factors ? trainee.change_of_state(ctx, comm) : trainee.last_change(3);
    if (comm.rank() > 0) return;
    change = mine;
    notice = resumed.notice;
  });
  return change;
}

TEST(OtherRanks, WhatIsOwedStaysTheSame) {
  for (const TrainConfig& config : all_methods())
    for (const int before : {1, 2, 3, 4, 8}) {
      const TempFolder folder;
      bool owes = false;
      const std::vector<float> expected = train_and_save(folder, config, before, &owes);
      EXPECT_TRUE(owes || before == 1 || !keeps_owed(config));
      for (const int now : {1, 2, 3, 4, 8}) {
        SCOPED_TRACE(fmt::format("{} from {} to {} ranks", text_of_method(config), before, now));
        std::string notice;
        expect_same_change(resumed_change(folder, config, now, notice), expected);
        EXPECT_EQ(notice.find("became") != notice.npos, before != now) << notice;
        EXPECT_EQ(notice.find("residual") != notice.npos, before != now && owes) << notice;
        if (HasFatalFailure()) return;
      }
    }
}

TEST(OtherMethod, WhatIsOwedStaysTheSame) {
  const std::vector<TrainConfig> all = all_methods();
  for (const TrainConfig& before : all) {
    const TempFolder folder;
    const std::vector<float> expected = train_and_save(folder, before, 4);
    for (const TrainConfig& now : all) {
      if (before.nesterov != now.nesterov) continue;  // another update, by the user's choice
      SCOPED_TRACE(text_of_method(before) + " to " + text_of_method(now));
      std::string notice, refused;
      std::vector<float> found;
      try {
        found = resumed_change(folder, now, 4, notice);
      } catch (const UserError& error) {
        refused = error.what();
      }
      const bool fits = keeps_owed(before) == keeps_owed(now) &&
                        corrects_momentum(before) == corrects_momentum(now) &&
                        before.is_local() == now.is_local();
      EXPECT_EQ(refused.empty(), fits) << refused;
      if (fits && refused.empty()) expect_same_change(found, expected);
      if (HasFailure()) return;
    }
  }
}

std::vector<std::byte> bytes_of_states(Optimizer& sgd) {
  std::vector<std::byte> all;
  for (const NamedState& state : sgd.states())
    all.insert(all.end(), state.bytes.begin(), state.bytes.end());
  return all;
}

TrainConfig tiny_with_settings(const std::string& sparsifier,
                               const std::vector<std::pair<const char*, const char*>>& settings,
                               std::optional<Scope> scope = {}) {
  TrainConfig config = tiny_method(sparsifier);
  config.scope = scope;
  for (const auto& [key, value] : settings) config.settings.set(key, value);
  return config;
}

/// Continues `before` of two ranks with `now`: whether the states are those that rank 0 saved, or
/// new ones, and the notice.
void continue_with(const TrainConfig& before, const TrainConfig& now, int ranks, bool kept,
                   const std::string& said) {
  SCOPED_TRACE(text_of_method(before) + " to " + text_of_method(now));
  const TempFolder folder;
  std::vector<std::byte> saved;
  run_ranks(2, [&](Context& ctx, Communicator& comm) {
    TinyTrainee trainee(ctx, comm, before);
    for (uint64_t step = 0; step < 3; ++step) trainee.step(comm.rank(), step, 0.05);
    save_tiny(folder, comm, before, trainee);
    if (comm.rank() == 0) saved = bytes_of_states(*trainee.sgd);
  });
  run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
    TinyTrainee trainee(ctx, comm, now);
    const std::vector<std::byte> fresh = bytes_of_states(*trainee.sgd);
    EXPECT_FALSE(fresh.empty());
    const Resumed resumed =
        load_checkpoint(comm, folder / checkpoint_name(3), now, trainee.model, *trainee.sgd);
    const bool first = comm.rank() == 0;  // of the states saved, those of rank 0 are known
    EXPECT_TRUE(!first || bytes_of_states(*trainee.sgd) == (kept ? saved : fresh))
        << resumed.notice;
    EXPECT_EQ(resumed.notice.find(said) != resumed.notice.npos, !kept) << resumed.notice;
    trainee.step(comm.rank(), 3, 0.05);
  });
}

TEST(OtherMethod, StatesOfOtherPartsStartAnew) {
  const TrainConfig topk = tiny_method("topk"), sidco = tiny_method("sidco"),
                    powersgd = tiny_method("powersgd"), oktopk = tiny_method("oktopk"),
                    oktopk_between_nodes = tiny_with_settings(
                        "hierarchical",
                        {{"hierarchical.exchange", "oktopk"}, {"hierarchical.node", "1"}}),
                    four_columns = tiny_with_settings("powersgd", {{"powersgd.rank", "2"}});
  const std::string selector = "selector sidco starts anew";
  continue_with(sidco, sidco, 2, true, "anew");
  continue_with(topk, sidco, 2, false, selector);
  continue_with(tiny_with_settings("sidco", {}, Scope::layer), sidco, 2, false, selector);
  continue_with(topk, tiny_method("hardthreshold"), 2, false, "selector hardthreshold starts anew");
  continue_with(topk, powersgd, 2, false, "exchange powersgd starts anew");
  continue_with(powersgd, four_columns, 2, false, "exchange powersgd starts anew");
  continue_with(powersgd, tiny_with_settings("powersgd", {}, Scope::layer), 2, false,
                "exchange powersgd starts anew");
  continue_with(oktopk, powersgd, 2, false, "exchange powersgd starts anew");
  // of the same size
  TrainConfig other_between_nodes = oktopk_between_nodes;
  other_between_nodes.settings.set("oktopk.exact_every", "2");
  continue_with(oktopk_between_nodes, oktopk_between_nodes, 2, true, "anew");
  continue_with(oktopk_between_nodes, other_between_nodes, 2, false,
                "exchange hierarchical starts anew");
  continue_with(oktopk_between_nodes, oktopk, 2, false, "exchange oktopk starts anew");
}

TEST(OtherRanks, OnlyStatesThatAreTheSameOnAllRanksGoOn) {
  continue_with(tiny_method("powersgd"), tiny_method("powersgd"), 3, true, "anew");
  continue_with(tiny_method("oktopk"), tiny_method("oktopk"), 3, false,
                "exchange oktopk starts anew");
  continue_with(tiny_method("sidco"), tiny_method("sidco"), 3, false, "selector sidco starts anew");
}

TEST(OtherMethod, MomentumThatWasNoneBeginsAtZero) {
  TrainConfig without = tiny_method("dense");
  without.momentum = 0;
  const TempFolder folder;
  train_and_save(folder, without, 1);
  std::string notice;
  const std::vector<float> change = resumed_change(folder, tiny_method("dense"), 1, notice);
  EXPECT_EQ(change, std::vector<float>(change.size()));
  EXPECT_NE(notice.find("momentum is 0 at first"), notice.npos) << notice;
}

TEST(ResumedState, AStateThatItsOwnMethodLacksIsAUserError) {
  const TempFolder folder;
  const TrainConfig config = tiny_method("sidco");
  train_and_save(folder, config, 1);
  const std::filesystem::path file = folder / checkpoint_name(3) / "rank-0.safetensors";
  {
    const SafetensorsReader whole(file);
    SafetensorsWriter damaged;
    for (const auto& [name, tensor] : whole.tensors())
      if (name != "selector.sidco") damaged.add(name, tensor);
    damaged.metadata("step", "3");
    damaged.write(file);
  }
  std::string notice;
  const std::string text =
      error_text<UserError>([&] { resumed_change(folder, config, 1, notice); });
  EXPECT_NE(text.find("has no tensor \"selector.sidco\""), text.npos) << text;
}

TEST(ResumedState, NothingMovesAFrozenTensor) {
  std::vector<TrainConfig> all = all_methods();
  for (TrainConfig& config : all) {
    SCOPED_TRACE(text_of_method(config));
    const TempFolder folder;
    config.weight_decay = 0.125;
    train_and_save(folder, config, 2);
    TrainConfig frozen = config;
    frozen.freeze = "fc1";
    run_ranks(2, [&](Context& ctx, Communicator& comm) {
      TinyTrainee trainee(ctx, comm, frozen);
      load_checkpoint(comm, folder / checkpoint_name(3), frozen, trainee.model, *trainee.sgd);
      const std::vector<float> before(trainee.model.arena().values().begin(),
                                      trainee.model.arena().values().end());
      for (const uint64_t step : {3, 4, 5}) trainee.step(comm.rank(), step, 0.5);
      for (const Parameter& p : trainee.model.arena().parameters())
        EXPECT_EQ(
            same_bits(p.in(trainee.model.arena().values()), p.in(std::span<const float>(before))),
            p.frozen)
            << p.name;
    });
  }
}

TEST(ResumedState, TensorsAreNotFrozenWithinARoundOfLocalSteps) {
  TrainConfig config = tiny_method("dense");
  config.local_steps = 4;
  const TempFolder folder;
  run_ranks(2, [&](Context& ctx, Communicator& comm) {
    TinyTrainee trainee(ctx, comm, config);
    trainee.sgd->step({.step = 0, .lr = kRate});
    save_tiny(folder, comm, config, trainee);
    TrainConfig frozen = config;
    frozen.freeze = "fc1";
    TinyTrainee now(ctx, comm, frozen);
    const std::string text = error_text<UserError>(
        [&] { load_checkpoint(comm, folder / checkpoint_name(3), frozen, now.model, *now.sgd); });
    EXPECT_NE(text.find("it is 1 local steps after an exchange, where ranks differ; resume it with "
                        "--freeze '', or"),
              text.npos)
        << text;
  });
}

}  // namespace
}  // namespace tw::test
