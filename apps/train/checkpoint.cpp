#include "apps/train/checkpoint.h"

#include <algorithm>
#include <optional>
#include <set>

#include "apps/common/rank_utils.h"
#include "apps/train/checkpoint_description.h"
#include "apps/train/evaluate.h"
#include "apps/train/run_folder.h"
#include "apps/train/summary.h"
#include "comm/collectives/collectives.h"
#include "engine/core/error.h"
#include "engine/io/file.h"
#include "engine/io/weights.h"
#include "sparsify/exchange.h"
#include "sparsify/local_sgd.h"

namespace tw {

namespace fs = std::filesystem;

namespace {

Tensor flat(std::span<float> values) {
  return {values.data(), {static_cast<int64_t>(values.size())}, DType::f32, Device::cpu};
}

SafetensorsReader sealed(SafetensorsReader file) {
  check(file.sealed(), "[checkpoint] {}: damaged, or not written by this program: no checksum",
        file.path().string());
  return file;
}

/// A file of a checkpoint; UserError when it belongs to another step.
SafetensorsReader part_of(SafetensorsReader part, int64_t step) {
  SafetensorsReader file = sealed(std::move(part));
  const auto stamp = file.metadata().find("step");
  const std::string found = stamp == file.metadata().end() ? "none" : stamp->second;
  check(found == std::to_string(step), "[checkpoint] {} belongs to step {}; expected {}",
        file.path().string(), found, step);
  return file;
}

/// The flat tensor `name` of `file`, which must have `length` elements.
std::span<const float> flat_from(const SafetensorsReader& file, const std::string& name,
                                 size_t length) {
  const std::span<const float> values = file.tensor(name).as<float>();
  check(values.size() == length, "[checkpoint] {}: {} has {} elements; this run needs {}",
        file.path().string(), name, values.size(), length);
  return values;
}

Tensor flat(std::span<std::byte> bytes) {
  return {bytes.data(), {static_cast<int64_t>(bytes.size())}, DType::u8, Device::cpu};
}

bool has_values(std::span<const float> vector) {
  return std::ranges::any_of(vector, [](float value) { return value != 0; });
}

/// The settings of a part, and those of an exchange that one of them names.
std::string settings_of(const std::string& part, const Settings& settings) {
  std::string text;
  for (const auto& [key, value] : settings.values()) {
    if (!key.starts_with(part + ".")) continue;
    text += fmt::format(" {}={}", key, value);
    if (exchanges().entries().contains(value)) text += settings_of(value, settings);
  }
  return text;
}

/// For each part of the optimizer, what the form and meaning of its state depend on.
std::map<std::string, std::string> forms_of_states(const TrainConfig& config) {
  SgdConfig sgd = config.sgd();
  sgd.overlap = false;  // it may exclude the scope of the checkpoint
  const Sparsifier parts = resolve_sparsifier(sgd, config.settings);
  const bool layers = parts.scope == Scope::layer;
  const auto form = [&](const std::string& name) {
    return fmt::format("{} {} {}{}", layers, parts.small_tensors_dense,
                       layers ? sgd.bucket_bytes : 0, settings_of(name, config.settings));
  };
  return {{"exchange " + parts.exchange, form(parts.exchange)},
          {"selector " + parts.selector, form(parts.selector)}};
}

/// Sets the weights and the state of the optimizer, as load_checkpoint() says.
class Restoration {
 public:
  Restoration(Communicator& comm, const RankFiles& files, const fs::path& checkpoint, Saved& saved,
              const TrainConfig& config, Model& model, Optimizer& optimizer)
      : comm_(comm),
        files_(files),
        checkpoint_(checkpoint),
        saved_(saved),
        config_(config),
        model_(model),
        optimizer_(optimizer) {}

  void run(const SafetensorsReader& weights) {
    const bool same = saved_.ranks == comm_.size();
    run_collectively(comm_, [&] {
      // reading is collective, so it comes before what may fail on one rank
      SafetensorsReader momentum = read(checkpoint_ / "momentum.safetensors"),
                        rank = same ? files_.read_own(comm_, checkpoint_)
                                    : read(rank_file(checkpoint_, 0));
      const SafetensorsReader common = checked(std::move(momentum)), own = checked(std::move(rank));
      load_weights(weights, model_.arena());
      take(common, optimizer_.common_vectors());
      if (same) take(own, vectors_of_ranks());
      take_states(own, same);
      drop_frozen();
    });
    const std::vector<uint8_t> unreachable =
        gather(comm_, static_cast<uint8_t>(optimizer_.has_unreachable_residual()));
    if (same && std::ranges::find(unreachable, 1) == unreachable.end()) return;
    average(same);
    drop_frozen();
    optimizer_.adopt_mean_residual();
  }

 private:
  SafetensorsReader read(const fs::path& path) const { return files_.read(comm_, path); }
  SafetensorsReader checked(SafetensorsReader file) const {
    return part_of(std::move(file), saved_.resumed.position.step);
  }
  void note(const std::string& text) { add_notice(saved_.resumed.notice, text); }

  std::vector<NamedVector> vectors_of_ranks() {
    std::vector<NamedVector> vectors = optimizer_.own_vectors();
    vectors.push_back({kStatistics, model_.arena().host_statistics(), Holds::momentum});
    return vectors;
  }

  /// The vector of the file; empty if only one of checkpoint and run has a momentum of this kind.
  std::span<const float> vector_in(const SafetensorsReader& file, const NamedVector& vector) const {
    const size_t length = vector.values.span().size();
    const TrainConfig& before = saved_.before;
    const bool other =
        before.momentum != config_.momentum || before.outer_momentum != config_.outer_momentum;
    if (other && vector.holds == Holds::momentum &&
        (length == 0) != file.tensor(vector.name).as<float>().empty())
      return {};
    return flat_from(file, vector.name, length);
  }

  void take(const SafetensorsReader& file, std::vector<NamedVector> vectors) {
    std::vector<std::span<const float>> saved;
    for (const NamedVector& one : vectors) saved.push_back(vector_in(file, one));
    for (size_t i = 0; NamedVector & one : vectors) {
      const std::span<const float> values = saved[i++];
      if (values.empty() && !one.values.span().empty())
        note(fmt::format("{} 0 at first", subject({one.name})));
      std::ranges::copy(values, one.values.span().begin());
      one.values.write();
    }
  }

  /// Takes over the states of parts that have not changed; on other ranks only those that are the
  /// same on all.
  void take_states(const SafetensorsReader& file, bool same_ranks) {
    const auto before = forms_of_states(saved_.before), now = forms_of_states(config_);
    std::set<std::string> anew;
    for (const NamedState& state : optimizer_.states()) {
      const auto found = before.find(state.part);
      const bool kept =
          state.part.empty() || (found != before.end() && found->second == now.at(state.part));
      if (!kept || !(same_ranks || state.common)) {
        anew.insert(state.part);
        continue;
      }
      const std::span<const uint8_t> bytes = file.tensor(state.name).as<uint8_t>();
      check(bytes.size() == state.bytes.size(),
            "[checkpoint] {}: {} has {} bytes; this run needs {}", file.path().string(), state.name,
            bytes.size(), state.bytes.size());
      std::ranges::copy(std::as_bytes(bytes), state.bytes.begin());
    }
    for (const std::string& part : anew) note(part + " starts anew");
  }

  /// Gives every rank the mean over the old ranks of what is owed and, on other ranks, of momentum
  /// and statistics. Parameters are those of the weights, or stay those of this rank.
  void average(bool same_ranks) {
    std::vector<NamedVector> vectors = vectors_of_ranks();
    std::erase_if(vectors, [&](const NamedVector& one) {
      return one.holds == Holds::parameters || (same_ranks && one.holds != Holds::owed);
    });
    for (NamedVector& one : vectors) std::ranges::fill(one.values.span(), 0.0f);
    for (int r = 0; r < saved_.ranks; ++r) {
      const SafetensorsReader file = checked(read(rank_file(checkpoint_, r)));
      for (NamedVector& one : vectors) {
        const std::span<float> sum = one.values.span();
        const std::span<const float> old = vector_in(file, one);
        for (size_t i = 0; i < old.size(); ++i) sum[i] += old[i] / static_cast<float>(saved_.ranks);
      }
    }
    std::vector<std::string> names;
    for (NamedVector& one : vectors) {
      if (has_values(one.values.span())) names.push_back(one.name);
      one.values.write();
    }
    if (same_ranks && !names.empty())  // the number of ranks has a notice of its own
      note(averaged(names, saved_.ranks) + ", since not every rank and tensor is selected from");
  }

  /// Nothing moves a frozen parameter: neither momentum nor what is owed.
  void drop_frozen() {
    std::vector<NamedVector> vectors = optimizer_.own_vectors();
    for (NamedVector& one : optimizer_.common_vectors()) vectors.push_back(std::move(one));
    for (NamedVector& one : vectors) {
      if (one.holds == Holds::parameters || one.values.span().empty()) continue;
      for (const Parameter& parameter : model_.arena().parameters())
        if (parameter.frozen) std::ranges::fill(parameter.in(one.values.span()), 0.0f);
      one.values.write();
    }
  }

  Communicator& comm_;
  const RankFiles& files_;
  const fs::path& checkpoint_;
  Saved& saved_;
  const TrainConfig& config_;
  Model& model_;
  Optimizer& optimizer_;
};

/// The vectors of the ranks, of which this is the first, whose mean decides the result on other
/// ranks. A validation takes no statistics from them but those of one rank.
std::vector<std::string> averaged_in(const SafetensorsReader& first, const TrainConfig& config) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : first.tensors()) {
    const bool counts = config.eval_only ? name == kStatistics && BnStats(config.bn_stats).of_rank_0
                                         : name != "parameters";
    if (counts && tensor.dtype == DType::f32 && has_values(tensor.as<float>()))
      names.push_back(name);
  }
  return names;
}

/// UserError when a run would continue in its folder as another experiment, or on one rank that
/// nobody asked for; a notice on another number of ranks. `first`: the file of rank 0.
void check_continues(const fs::path& checkpoint, const SafetensorsReader& first, Saved& saved,
                     const TrainConfig& config, int ranks) {
  check(saved.other_experiment.empty() || config.branches || config.eval_only,
        "[resume] {}: {}; a new --name with --resume PATH continues in a folder of its own{}",
        checkpoint.string(), saved.other_experiment,
        config.resumes_last() ? "; --resume PATH alone takes the options of the run" : "");
  if (saved.ranks == ranks) return;
  check(ranks > 1 || config.workers > 0 || config.eval_only,
        "[resume] {} is of {} ranks: mpirun -n {} train continues it; --workers 1 does on one rank",
        checkpoint.string(), saved.ranks, saved.ranks);
  const std::vector<std::string> means = averaged_in(first, config);
  if (config.eval_only && means.empty()) return;
  const int64_t before = saved.ranks * saved.batch,
                now = ranks * config.batch_size * config.accumulate;
  if (before != now && !config.eval_only)
    add_notice(saved.resumed.notice,
               fmt::format("images of a step were {}, are now {}", before, now));
  add_notice(saved.resumed.notice,
             fmt::format("{} became {}: {}{}the result differs from that of an uninterrupted run",
                         counted(saved.ranks, "rank"), ranks, averaged(means, saved.ranks),
                         means.empty() ? "" : ", and "));
}

/// Whether the optimizer has a vector of this name that is not empty.
bool keeps(Optimizer& optimizer, const std::string& name) {
  return std::ranges::any_of(optimizer.own_vectors(), [&](const NamedVector& own) {
    return own.name == name && !own.values.span().empty();
  });
}

/// UserError unless both or none of the checkpoint, whose rank 0 has this file, and the run keep a
/// residual.
void check_residual(const fs::path& checkpoint, const SafetensorsReader& first, const Saved& saved,
                    const TrainConfig& config, bool keeps_one) {
  check(first.tensor("residual").as<float>().empty() != keeps_one,
        "[resume] {}: sparsifier is \"{}\" in the checkpoint, \"{}\" in this run; only one of them "
        "keeps a residual; --pretrained {} starts a new run from its weights",
        checkpoint.string(), saved.before.sparsifier, config.sparsifier, shell_word(checkpoint));
}

/// UserError unless checkpoint and run have the same per-rank vectors; within a round of local
/// steps also on another number of ranks, for validation and with other frozen tensors, since the
/// parameters of the ranks differ.
void check_own_vectors(const fs::path& checkpoint, const SafetensorsReader& first,
                       const Saved& saved, const TrainConfig& config, int ranks,
                       Optimizer& optimizer) {
  const std::string prefix = fmt::format("[resume] {}", checkpoint.string());
  check_residual(checkpoint, first, saved, config, keeps(optimizer, "residual"));
  check(first.has("local_momentum") == keeps(optimizer, "local_momentum"),
        "{}: only one of the checkpoint and this run has momentum before the selection "
        "(momentum-correction)",
        prefix);
  check(first.has("round") == keeps(optimizer, "parameters"),
        "{}: only one of the checkpoint and this run takes local steps (local-steps); --pretrained "
        "{} starts a new run from its weights",
        prefix, shell_word(checkpoint));
  const bool freezes = saved.before.freeze != config.freeze;
  if (!first.has("round") || (saved.ranks == ranks && !config.eval_only && !freezes)) return;
  const uint64_t steps =
      LocalSgd::steps_in_round(std::as_bytes(first.tensor("round").as<uint8_t>()));
  const std::string cure = saved.ranks != ranks
                               ? fmt::format("resume it on {} ranks", saved.ranks)
                               : fmt::format("resume it with --freeze '{}'", saved.before.freeze);
  check(steps == 0, "{}: it is {} local steps after an exchange, where ranks differ; {}", prefix,
        steps,
        config.eval_only ? "validate a checkpoint of the end of an epoch"
                         : cure + ", or a checkpoint of the end of an epoch");
}

/// Moves the position by the text of validated.json, in the batches of a run on `ranks` ranks.
void move_position(Saved& saved, const std::string& validated, const TrainConfig& config,
                   int ranks) {
  Position& at = saved.resumed.position;
  at = after_validation(at, validated);
  at.batch = at.batch * saved.ranks * saved.batch / (ranks * config.batch_size * config.accumulate);
}

}  // namespace

void save_checkpoint(Communicator& comm, const fs::path& folder, const TrainConfig& config,
                     const Position& position, Model& model, Optimizer& optimizer,
                     std::span<const float> statistics, const RankFiles& files) {
  const OperationScope operation(comm, "checkpoint");
  const fs::path target = folder / checkpoint_name(position.step);
  const fs::path part = folder / fmt::format(".{}.part", checkpoint_name(position.step));
  const bool root = comm.rank() == 0;
  const std::string exists = root && fs::exists(target) ? "yes" : "";
  if (!broadcast_text(comm, exists).empty()) return;  // this step is saved already
  if (root) {
    fs::remove_all(part);
    fs::create_directories(part);
  }
  barrier(comm);

  HostFloats live = model.arena().host_statistics();
  const std::span<float> local = live.span();
  SafetensorsWriter own;
  std::vector<NamedVector> vectors = optimizer.own_vectors();
  for (NamedVector& one : vectors) own.add(one.name, flat(one.values.span()));
  own.add(kStatistics, flat(local));
  own.metadata("step", std::to_string(position.step));
  for (const NamedState& state : optimizer.states()) own.add(state.name, flat(state.bytes));
  files.write(comm, own, part);
  if (root) {
    std::vector<NamedVector> common = optimizer.common_vectors();
    SafetensorsWriter momentum;
    for (NamedVector& one : common) momentum.add(one.name, flat(one.values.span()));
    momentum.metadata("step", std::to_string(position.step));
    momentum.write(part / "momentum.safetensors");
    const StatisticsSwap swap(model, statistics);
    save_weights(part / "model.safetensors", model.arena(),
                 describe(config, position, comm.size()));
  }

  barrier(comm);
  if (root) {
    sync_to_disk(part);
    rename_durably(part, target);
    // an epoch that is not validated replaces none
    if (!position.to_validate) remove_old_checkpoints(folder, config.keep_checkpoints, 0);
  }
}

void replace_statistics(const fs::path& checkpoint, Model& model,
                        std::span<const float> statistics) {
  const StatisticsSwap swap(model, statistics);
  const fs::path file = checkpoint / "model.safetensors";
  save_weights(file, model.arena(), SafetensorsReader(file).metadata());
}

Resumed describe_checkpoint(const fs::path& checkpoint, const TrainConfig& config, int ranks) {
  Saved saved = description_in(sealed(SafetensorsReader(checkpoint / "model.safetensors")),
                               checkpoint, config);
  const SafetensorsReader first =
      part_of(SafetensorsReader(rank_file(checkpoint, 0)), saved.resumed.position.step);
  check_residual(checkpoint, first, saved, config,
                 keeps_residual(resolve_sparsifier(config.sgd(), config.settings)));
  check_continues(checkpoint, first, saved, config, ranks);
  move_position(saved, read_validated(checkpoint), config, ranks);
  return saved.resumed;
}

Resumed load_checkpoint(Communicator& comm, const fs::path& checkpoint, const TrainConfig& config,
                        Model& model, Optimizer& optimizer, const RankFiles& files) {
  std::string validated;
  std::optional<SafetensorsReader> weights;
  Saved saved;
  Position& at = saved.resumed.position;
  run_collectively(comm, [&] {
    if (comm.rank() == 0) validated = read_validated(checkpoint);
  });
  validated = broadcast_text(comm, validated);
  run_collectively(comm, [&] {
    weights.emplace(sealed(files.read(comm, checkpoint / "model.safetensors")));
    saved = description_in(*weights, checkpoint, config);
    const SafetensorsReader first = part_of(files.read(comm, rank_file(checkpoint, 0)), at.step);
    check_own_vectors(checkpoint, first, saved, config, comm.size(), optimizer);
    check_continues(checkpoint, first, saved, config, comm.size());
  });
  Restoration(comm, files, checkpoint, saved, config, model, optimizer).run(*weights);
  move_position(saved, validated, config, comm.size());
  return saved.resumed;
}

}  // namespace tw
