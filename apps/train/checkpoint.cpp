#include "apps/train/checkpoint.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/common/rank_utils.h"
#include "apps/train/evaluate.h"
#include "engine/core/error.h"
#include "engine/io/file.h"
#include "engine/io/weights.h"

namespace tw {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFormat = "thinwire checkpoint 1";

fs::path rank_file(const fs::path& folder, int rank) {
  return folder / fmt::format("rank-{}.safetensors", rank);
}

Tensor flat(std::span<float> values) {
  return {values.data(), {static_cast<int64_t>(values.size())}, DType::f32, Device::cpu};
}

SafetensorsReader sealed_file(const fs::path& path) {
  SafetensorsReader file(path);
  check(file.sealed(), "[checkpoint] {}: damaged, or not written by this program: no checksum",
        path.string());
  return file;
}

/// Opens a file of a checkpoint; UserError when it belongs to another step.
SafetensorsReader part_of(const fs::path& path, int64_t step) {
  SafetensorsReader file = sealed_file(path);
  const auto stamp = file.metadata().find("step");
  const std::string found = stamp == file.metadata().end() ? "none" : stamp->second;
  check(found == std::to_string(step), "[checkpoint] {} belongs to step {}; expected {}",
        path.string(), found, step);
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

void remove_old(const fs::path& folder) {
  constexpr size_t kKept = 2;
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) found.push_back(entry);
  std::ranges::sort(found);
  std::erase_if(found,
                [](const fs::path& p) { return !p.filename().string().starts_with("step-"); });
  for (size_t i = 0; i + kKept < found.size(); ++i) fs::remove_all(found[i]);
}

/// The options that decide the weights.
Json description_of(TrainConfig config) {
  Json json = config.json();
  for (const std::string& key : config.table().keys(Effect::none)) json.erase(key);
  return json;
}

std::map<std::string, std::string> describe(const TrainConfig& config, const Position& at,
                                            int ranks) {
  const Json json = {{"config", description_of(config)},
                     {"ranks", ranks},
                     {"step", at.step},
                     {"epoch", at.epoch},
                     {"batch", at.batch},
                     {"totals", at.totals.json()},
                     {"run", at.run.json()}};
  return {{"format", kFormat}, {"thinwire", json.dump()}};
}

/// The vectors that differ between ranks; only their sum over the ranks matters.
std::vector<std::pair<const char*, HostFloats>> own_vectors(SyncSgd& sgd) {
  std::vector<std::pair<const char*, HostFloats>> own{{"residual", sgd.host_residual()}};
  if (!sgd.local_momentum().empty()) own.emplace_back("local_momentum", sgd.host_local_momentum());
  return own;
}

Tensor flat(std::span<std::byte> bytes) {
  return {bytes.data(), {static_cast<int64_t>(bytes.size())}, DType::u8, Device::cpu};
}

/// The file of one rank. Reads and checks everything that this run needs; changes nothing yet.
struct RankState {
  RankState(const fs::path& path, int64_t step, SyncSgd& sgd, size_t statistics_length)
      : file(part_of(path, step)) {
    for (const auto& [name, values] : own_vectors(sgd))
      vectors.push_back(flat_from(file, name, values.span().size()));
    statistics = flat_from(file, "statistics", statistics_length);
    for (const auto& [name, bytes] : sgd.states()) {
      states.push_back(file.tensor(name).as<uint8_t>());
      check(states.back().size() == bytes.size(),
            "[checkpoint] {}: {} has {} bytes; this run needs {}", path.string(), name,
            states.back().size(), bytes.size());
    }
  }

  SafetensorsReader file;
  std::vector<std::span<const float>> vectors;
  std::span<const float> statistics;
  std::vector<std::span<const uint8_t>> states;
};

/// With the same number of ranks: each rank takes what it saved.
void restore(const Communicator& comm, const SafetensorsReader& weights, const fs::path& checkpoint,
             int64_t step, Model& model, SyncSgd& sgd) {
  HostFloats statistics = model.arena().host_statistics();
  const RankState saved(rank_file(checkpoint, comm.rank()), step, sgd, statistics.span().size());
  load_weights(weights, model.arena());
  for (size_t i = 0; auto& [name, values] : own_vectors(sgd)) {
    std::ranges::copy(saved.vectors[i++], values.span().begin());
    values.write();
  }
  std::ranges::copy(saved.statistics, statistics.span().begin());
  statistics.write();
  for (size_t i = 0; const NamedState& state : sgd.states())
    std::ranges::copy(std::as_bytes(saved.states[i++]), state.bytes.begin());
}

/// With another number of ranks: element i of the old ranks' sum goes to rank i mod P, and every
/// rank gets the mean of the statistics. The states of exchanges and selector start anew.
void redistribute(const SafetensorsReader& weights, const Communicator& comm,
                  const fs::path& checkpoint, int64_t step, int64_t old_ranks, Model& model,
                  SyncSgd& sgd) {
  HostFloats live = model.arena().host_statistics();
  load_weights(weights, model.arena());
  auto own = own_vectors(sgd);
  for (auto& [name, values] : own) std::ranges::fill(values.span(), 0.0f);
  const std::span<float> statistics = live.span();
  std::ranges::fill(statistics, 0.0f);
  const size_t ranks = static_cast<size_t>(comm.size()), first = static_cast<size_t>(comm.rank());
  for (int r = 0; r < old_ranks; ++r) {
    const SafetensorsReader file = part_of(rank_file(checkpoint, r), step);
    for (auto& [name, vector] : own) {
      const std::span<float> values = vector.span();
      const auto old = flat_from(file, name, values.size());
      for (size_t i = first; i < values.size(); i += ranks) values[i] += old[i];
    }
    const auto old_statistics = flat_from(file, "statistics", statistics.size());
    for (size_t i = 0; i < statistics.size(); ++i)
      statistics[i] += old_statistics[i] / static_cast<float>(old_ranks);
  }
  for (auto& [name, values] : own) values.write();
  live.write();
}

/// The description of the run in the metadata of model.safetensors.
struct Saved {
  Resumed resumed;
  std::string sparsifier;
  int64_t ranks = 0;
  int64_t batch = 0;  ///< images of a rank and step
};

/// Compares the options of the checkpoint with those of this run: UserError where an essential one
/// differs, a notice for each other one that changes the weights.
void compare(const Json& then, const TrainConfig& config, const std::string& prefix,
             std::string& notice) {
  TrainConfig copy = config;
  const Json all = copy.json();
  for (const std::string& key : copy.table().keys(Effect::essential))
    check(then.at(key) == all.at(key), "{}: {} is {} in the checkpoint, {} in this run", prefix,
          key, then.at(key).dump(), all.at(key).dump());
  const Json now = description_of(config);
  for (const auto& [key, value] : now.items()) {
    if (!then.contains(key) || then[key] != value)
      notice +=
          fmt::format("{} was {}, is now {}; ", key, then.value(key, Json()).dump(), value.dump());
  }
}

/// Verifies and reads the description.
Saved description_in(const SafetensorsReader& weights, const fs::path& checkpoint,
                     const TrainConfig& config) {
  const std::string prefix = fmt::format("[resume] {}", checkpoint.string());
  const auto& metadata = weights.metadata();
  const auto format = metadata.find("format");
  check(format != metadata.end() && format->second == kFormat && metadata.contains("thinwire"),
        "{}: not a checkpoint of this program (format \"{}\" expected)", prefix, kFormat);
  Saved saved;
  Position& at = saved.resumed.position;
  try {
    const Json json = Json::parse(metadata.at("thinwire"));
    const Json& then = json.at("config");
    compare(then, config, prefix, saved.resumed.notice);
    then.at("sparsifier").get_to(saved.sparsifier);
    json.at("ranks").get_to(saved.ranks);
    saved.batch = then.at("batch_size").get<int64_t>() * then.value("accumulate", int64_t{1});
    json.at("step").get_to(at.step);
    json.at("epoch").get_to(at.epoch);
    json.at("batch").get_to(at.batch);
    at.totals = EpochTotals::from_json(json.at("totals"));
    at.run = EpochTotals::from_json(json.at("run"));
  } catch (const Json::exception& error) {
    fail("{}: damaged description: {}", prefix, error.what());
  }
  return saved;
}

/// UserError unless checkpoint and run have the same per-rank vectors (residual, local momentum).
void check_residuals(const fs::path& checkpoint, const Saved& saved, const TrainConfig& config,
                     SyncSgd& sgd) {
  const std::string prefix = fmt::format("[resume] {}", checkpoint.string());
  const SafetensorsReader first = part_of(rank_file(checkpoint, 0), saved.resumed.position.step);
  const bool had_residual = !first.tensor("residual").as<float>().empty();
  check(had_residual != sgd.residual().empty(),
        "{}: sparsifier is {} in the checkpoint, {} in this run; only one of them keeps a residual",
        prefix, saved.sparsifier, config.sparsifier);
  check(first.has("local_momentum") != sgd.local_momentum().empty(),
        "{}: only one of the checkpoint and this run has momentum before the selection "
        "(momentum-correction)",
        prefix);
}

}  // namespace

void remove_newer_checkpoints(const fs::path& folder, int64_t step) {
  const std::string last = fmt::format("step-{:08}", step);
  std::vector<fs::path> newer;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if ((name.starts_with("step-") && name > last) || name.ends_with(".part"))
      newer.push_back(entry.path());
  }
  for (const fs::path& path : newer) fs::remove_all(path);
}

void save_checkpoint(Communicator& comm, const fs::path& folder, const TrainConfig& config,
                     const Position& position, Model& model, SyncSgd& sgd,
                     std::span<const float> statistics) {
  const OperationScope operation(comm, "checkpoint");
  const fs::path target = folder / fmt::format("step-{:08}", position.step);
  const fs::path part = folder / fmt::format(".step-{:08}.part", position.step);
  const std::string exists = fs::exists(target) ? "yes" : "";
  if (!broadcast_text(comm, exists).empty()) return;  // this step is saved already
  const bool root = comm.rank() == 0;
  if (root) {
    fs::remove_all(part);
    fs::create_directories(part);
  }
  barrier(comm);

  HostFloats live = model.arena().host_statistics();
  const std::span<float> local = live.span();
  SafetensorsWriter own;
  auto vectors = own_vectors(sgd);
  for (auto& [name, values] : vectors) own.add(name, flat(values.span()));
  own.add("statistics", flat(local));
  own.metadata("step", std::to_string(position.step));
  for (const auto& [name, bytes] : sgd.states()) own.add(name, flat(bytes));
  own.write(rank_file(part, comm.rank()));
  if (root) {
    HostFloats values = sgd.host_momentum();
    SafetensorsWriter momentum;
    momentum.add("momentum", flat(values.span()));
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
    remove_old(folder);
  }
}

Resumed load_checkpoint(Communicator& comm, const fs::path& checkpoint, const TrainConfig& config,
                        Model& model, SyncSgd& sgd) {
  const SafetensorsReader weights = sealed_file(checkpoint / "model.safetensors");
  Saved saved = description_in(weights, checkpoint, config);
  check_residuals(checkpoint, saved, config, sgd);
  Resumed& resumed = saved.resumed;
  Position& at = resumed.position;
  const SafetensorsReader momentum_file = part_of(checkpoint / "momentum.safetensors", at.step);
  const auto momentum = flat_from(momentum_file, "momentum", sgd.momentum().size());
  if (saved.ranks == comm.size()) {
    restore(comm, weights, checkpoint, at.step, model, sgd);
  } else {
    redistribute(weights, comm, checkpoint, at.step, saved.ranks, model, sgd);
    resumed.notice +=
        fmt::format("{} ranks became {}: residuals were summed and distributed again; ",
                    saved.ranks, comm.size());
  }
  HostFloats restored = sgd.host_momentum();
  std::ranges::copy(momentum, restored.span().begin());
  restored.write();
  const int64_t images = at.batch * saved.ranks * saved.batch;
  at.batch = images / (comm.size() * config.batch_size * config.accumulate);
  return resumed;
}

}  // namespace tw
