#include "apps/train/checkpoint.h"

#include <algorithm>

#include "apps/common/rank_utils.h"
#include "apps/train/checkpoint_description.h"
#include "apps/train/evaluate.h"
#include "apps/train/run_folder.h"
#include "apps/train/summary.h"
#include "engine/core/error.h"
#include "engine/io/file.h"
#include "engine/io/weights.h"
#include "sparsify/local_sgd.h"

namespace tw {

namespace fs = std::filesystem;

namespace {

fs::path rank_file(const fs::path& folder, int rank) {
  return folder / fmt::format("rank-{}.safetensors", rank);
}

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

/// The file of one rank. Reads and checks everything that this run needs; changes nothing yet.
struct RankState {
  RankState(SafetensorsReader part, int64_t step, Optimizer& optimizer, size_t statistics_length)
      : file(part_of(std::move(part), step)) {
    for (const NamedVector& own : optimizer.own_vectors())
      vectors.push_back(flat_from(file, own.name, own.values.span().size()));
    statistics = flat_from(file, "statistics", statistics_length);
    for (const auto& [name, bytes] : optimizer.states()) {
      states.push_back(file.tensor(name).as<uint8_t>());
      check(states.back().size() == bytes.size(),
            "[checkpoint] {}: {} has {} bytes; this run needs {}", file.path().string(), name,
            states.back().size(), bytes.size());
    }
  }

  SafetensorsReader file;
  std::vector<std::span<const float>> vectors;
  std::span<const float> statistics;
  std::vector<std::span<const uint8_t>> states;
};

/// With the same number of ranks: each rank takes what it saved.
void restore(Communicator& comm, const RankFiles& files, const SafetensorsReader& weights,
             const fs::path& checkpoint, int64_t step, Model& model, Optimizer& optimizer) {
  HostFloats statistics = model.arena().host_statistics();
  const RankState saved(files.read(comm, rank_file(checkpoint, comm.rank())), step, optimizer,
                        statistics.span().size());
  load_weights(weights, model.arena());
  for (size_t i = 0; NamedVector & own : optimizer.own_vectors()) {
    std::ranges::copy(saved.vectors[i++], own.values.span().begin());
    own.values.write();
  }
  std::ranges::copy(saved.statistics, statistics.span().begin());
  statistics.write();
  for (size_t i = 0; const NamedState& state : optimizer.states())
    std::ranges::copy(std::as_bytes(saved.states[i++]), state.bytes.begin());
}

/// Adds what rank `rank` of `ranks` gets of a vector that one of the `old_ranks` saved.
void add_part(const NamedVector& own, std::span<const float> old, size_t rank, size_t ranks,
              int64_t old_ranks, std::span<float> sum) {
  if (own.on_other_ranks == OtherRanks::share_sum)
    for (size_t i = rank; i < sum.size(); i += ranks) sum[i] += old[i];
  else
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += old[i] / static_cast<float>(old_ranks);
}

/// With another number of ranks: every vector as it says, and the mean of the statistics. The
/// states of the optimizer's parts start anew.
void redistribute(const SafetensorsReader& weights, Communicator& comm, const RankFiles& files,
                  const fs::path& checkpoint, int64_t step, int64_t old_ranks, Model& model,
                  Optimizer& optimizer) {
  load_weights(weights, model.arena());
  std::vector<NamedVector> own = optimizer.own_vectors();
  // rank 0's parameters are those of `weights`
  std::erase_if(
      own, [](const NamedVector& one) { return one.on_other_ranks == OtherRanks::same_anyway; });
  own.push_back({"statistics", model.arena().host_statistics(), OtherRanks::mean});
  for (NamedVector& one : own) std::ranges::fill(one.values.span(), 0.0f);
  const size_t ranks = static_cast<size_t>(comm.size()), rank = static_cast<size_t>(comm.rank());
  for (int r = 0; r < old_ranks; ++r) {
    const SafetensorsReader file = part_of(files.read(comm, rank_file(checkpoint, r)), step);
    for (NamedVector& one : own) {
      const std::span<float> sum = one.values.span();
      add_part(one, flat_from(file, one.name, sum.size()), rank, ranks, old_ranks, sum);
    }
  }
  for (NamedVector& one : own) one.values.write();
}

/// UserError when a run would continue in its folder as another experiment, or on one rank that
/// nobody asked for; a notice on another number of ranks.
void check_continues(const fs::path& checkpoint, Saved& saved, const TrainConfig& config,
                     int ranks) {
  check(saved.other_experiment.empty() || config.branches || config.eval_only,
        "[resume] {}: {}; a new --name with --resume PATH continues in a folder of its own{}",
        checkpoint.string(), saved.other_experiment,
        config.resume == "auto" ? "; --resume PATH alone takes the options of the run" : "");
  if (saved.ranks == ranks) return;
  check(ranks > 1 || config.workers > 0 || config.eval_only,
        "[resume] {} is of {} ranks: mpirun -n {} train continues it; --workers 1 does on one rank",
        checkpoint.string(), saved.ranks, saved.ranks);
  add_notice(saved.resumed.notice,
             fmt::format("{} ranks became {}: residuals were summed and distributed again, and the "
                         "result differs from that of an uninterrupted run",
                         saved.ranks, ranks));
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
        checkpoint.string(), saved.sparsifier, config.sparsifier, checkpoint.string());
}

/// UserError unless checkpoint and run have the same per-rank vectors; within a round of local
/// steps also on another number of ranks and for validation, since the parameters of the ranks
/// differ.
void check_own_vectors(SafetensorsReader rank_0, const fs::path& checkpoint, const Saved& saved,
                       const TrainConfig& config, int ranks, Optimizer& optimizer) {
  const std::string prefix = fmt::format("[resume] {}", checkpoint.string());
  const SafetensorsReader first = part_of(std::move(rank_0), saved.resumed.position.step);
  check_residual(checkpoint, first, saved, config, keeps(optimizer, "residual"));
  check(first.has("local_momentum") == keeps(optimizer, "local_momentum"),
        "{}: only one of the checkpoint and this run has momentum before the selection "
        "(momentum-correction)",
        prefix);
  check(first.has("round") == keeps(optimizer, "parameters"),
        "{}: only one of the checkpoint and this run takes local steps (local-steps); --pretrained "
        "{} starts a new run from its weights",
        prefix, checkpoint.string());
  if (!first.has("round") || (saved.ranks == ranks && !config.eval_only)) return;
  const uint64_t steps =
      LocalSgd::steps_in_round(std::as_bytes(first.tensor("round").as<uint8_t>()));
  check(steps == 0, "{}: it is {} local steps after an exchange, where ranks differ; {}", prefix,
        steps,
        config.eval_only ? "validate a checkpoint of the end of an epoch"
                         : fmt::format("resume it on {} ranks, or a checkpoint of the end of an "
                                       "epoch",
                                       saved.ranks));
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
  own.add("statistics", flat(local));
  own.metadata("step", std::to_string(position.step));
  for (const auto& [name, bytes] : optimizer.states()) own.add(name, flat(bytes));
  files.write(comm, own, rank_file(part, comm.rank()));
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
  check_residual(checkpoint,
                 part_of(SafetensorsReader(rank_file(checkpoint, 0)), saved.resumed.position.step),
                 saved, config, keeps_residual(resolve_sparsifier(config.sgd(), config.settings)));
  check_continues(checkpoint, saved, config, ranks);
  return saved.resumed;
}

Resumed load_checkpoint(Communicator& comm, const fs::path& checkpoint, const TrainConfig& config,
                        Model& model, Optimizer& optimizer, const RankFiles& files) {
  std::string validated;
  run_collectively(comm, [&] {
    if (comm.rank() == 0) validated = read_validated(checkpoint);
  });
  validated = broadcast_text(comm, validated);
  const SafetensorsReader weights = sealed(files.read(comm, checkpoint / "model.safetensors"));
  Saved saved = description_in(weights, checkpoint, config);
  check_own_vectors(files.read(comm, rank_file(checkpoint, 0)), checkpoint, saved, config,
                    comm.size(), optimizer);
  Resumed& resumed = saved.resumed;
  Position& at = resumed.position;
  const SafetensorsReader momentum_file =
      part_of(files.read(comm, checkpoint / "momentum.safetensors"), at.step);
  std::vector<NamedVector> common = optimizer.common_vectors();
  std::vector<std::span<const float>> saved_common;
  for (const NamedVector& one : common)
    saved_common.push_back(flat_from(momentum_file, one.name, one.values.span().size()));
  if (saved.ranks == comm.size())
    restore(comm, files, weights, checkpoint, at.step, model, optimizer);
  else
    redistribute(weights, comm, files, checkpoint, at.step, saved.ranks, model, optimizer);
  for (size_t i = 0; NamedVector & one : common) {
    std::ranges::copy(saved_common[i++], one.values.span().begin());
    one.values.write();
  }
  check_continues(checkpoint, saved, config, comm.size());
  at = after_validation(at, validated);
  const int64_t images = at.batch * saved.ranks * saved.batch;
  at.batch = images / (comm.size() * config.batch_size * config.accumulate);
  return resumed;
}

}  // namespace tw
