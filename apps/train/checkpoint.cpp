#include "apps/train/checkpoint.h"

#include <algorithm>

#include "apps/common/rank_utils.h"
#include "apps/train/evaluate.h"
#include "engine/core/error.h"
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
  check(file.sealed(), "[checkpoint] {}: damaged, or not of this program: it has no checksum",
        path.string());
  return file;
}

/// A file of the checkpoint of `step`, and of no other.
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

/// Keys of the configuration without influence on the weights.
const char* const kHarmless[] = {"output_dir",   "name",           "eval_every", "checkpoint_every",
                                 "data_dir",     "max_steps",      "workers",    "checkpoint_steps",
                                 "device",       "loader_threads", "overlap",    "pretrained",
                                 "recompute",    "analyze_every",  "link",       "ranks_per_node",
                                 "comm_timeout", "measure_wait"};
/// Keys without which the checkpoint makes no sense.
const char* const kEssential[] = {"model", "dataset", "seed", "val_size"};

Json description_of(TrainConfig config) {
  Json json = config.json();
  for (const char* key : kHarmless) json.erase(key);
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

/// The vectors that each rank has of its own and whose sum over the ranks is what counts.
std::vector<std::pair<const char*, HostFloats>> own_vectors(SyncSgd& sgd) {
  std::vector<std::pair<const char*, HostFloats>> own{{"residual", sgd.host_residual()}};
  if (!sgd.local_momentum().empty()) own.emplace_back("local_momentum", sgd.host_local_momentum());
  return own;
}

std::string exchange_name(size_t bucket) { return fmt::format("exchange.{}", bucket); }

Tensor flat(std::span<std::byte> bytes) {
  return {bytes.data(), {static_cast<int64_t>(bytes.size())}, DType::u8, Device::cpu};
}

/// Sums the old ranks' vectors and gives element i to rank i mod P; averages statistics.
void redistribute(Communicator& comm, const fs::path& checkpoint, int64_t step, int64_t old_ranks,
                  SyncSgd& sgd, std::span<float> statistics) {
  auto own = own_vectors(sgd);
  for (auto& [name, values] : own) std::ranges::fill(values.span(), 0.0f);
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
}

/// This rank's own file, with everything in it that this run needs.
struct OwnState {
  OwnState(const fs::path& path, int64_t step, SyncSgd& sgd, size_t statistics_length)
      : file(part_of(path, step)) {
    for (const auto& [name, values] : own_vectors(sgd))
      vectors.push_back(flat_from(file, name, values.span().size()));
    statistics = flat_from(file, "statistics", statistics_length);
    const auto states = sgd.exchange_state();
    for (size_t i = 0; i < states.size(); ++i) {
      if (states[i].empty()) continue;
      exchanges.push_back(file.tensor(exchange_name(i)).as<uint8_t>());
      check(exchanges.back().size() == states[i].size(),
            "[checkpoint] {}: {} has {} bytes; this run needs {}", path.string(), exchange_name(i),
            exchanges.back().size(), states[i].size());
    }
  }

  SafetensorsReader file;
  std::vector<std::span<const float>> vectors;
  std::span<const float> statistics;
  std::vector<std::span<const uint8_t>> exchanges;
};

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

void save_checkpoint(Context& ctx, Communicator& comm, const fs::path& folder,
                     const TrainConfig& config, const Position& position, Model& model,
                     SyncSgd& sgd, std::span<const float> statistics) {
  const OperationScope doing(comm, "checkpoint");
  const fs::path target = folder / fmt::format("step-{:08}", position.step);
  const fs::path part = folder / fmt::format(".step-{:08}.part", position.step);
  const std::string exists = fs::exists(target) ? "yes" : "";
  if (!broadcast_text(ctx, comm, exists).empty()) return;  // this very step was saved before
  const bool root = comm.rank() == 0;
  if (root) {
    fs::remove_all(part);
    fs::create_directories(part);
  }
  barrier(ctx, comm);

  HostFloats live = model.arena().host_statistics();
  const std::span<float> local = live.span();
  SafetensorsWriter own;
  auto vectors = own_vectors(sgd);
  for (auto& [name, values] : vectors) own.add(name, flat(values.span()));
  own.add("statistics", flat(local));
  own.metadata("step", std::to_string(position.step));
  const auto states = sgd.exchange_state();
  for (size_t i = 0; i < states.size(); ++i)
    if (!states[i].empty()) own.add(exchange_name(i), flat(states[i]));
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

  barrier(ctx, comm);
  if (root) {
    fs::rename(part, target);
    remove_old(folder);
  }
}

Resumed load_checkpoint(Communicator& comm, const fs::path& checkpoint, const TrainConfig& config,
                        Model& model, SyncSgd& sgd) {
  const SafetensorsReader weights = sealed_file(checkpoint / "model.safetensors");
  const std::string place = fmt::format("[resume] {}", checkpoint.string());
  const auto& metadata = weights.metadata();
  const auto format = metadata.find("format");
  check(format != metadata.end() && format->second == kFormat && metadata.contains("thinwire"),
        "{}: not a checkpoint of this program (format \"{}\" expected)", place, kFormat);

  Resumed resumed;
  Position& at = resumed.position;
  int64_t old_ranks = 0, old_batch = 0;
  std::string old_sparsifier;
  try {
    const Json json = Json::parse(metadata.at("thinwire"));
    const Json& then = json.at("config");
    const Json now = description_of(config);
    for (const char* key : kEssential)
      check(then.at(key) == now.at(key), "{}: {} is {} in the checkpoint, {} in this run", place,
            key, then.at(key).dump(), now.at(key).dump());
    for (const auto& [key, value] : now.items()) {
      if (!then.contains(key) || then[key] != value)
        resumed.notice += fmt::format("{} was {}, is now {}; ", key, then.value(key, Json()).dump(),
                                      value.dump());
    }
    then.at("sparsifier").get_to(old_sparsifier);
    json.at("ranks").get_to(old_ranks);
    old_batch = then.at("batch_size").get<int64_t>() * then.value("accumulate", int64_t{1});
    json.at("step").get_to(at.step);
    json.at("epoch").get_to(at.epoch);
    json.at("batch").get_to(at.batch);
    at.totals = EpochTotals::from_json(json.at("totals"));
    at.run = EpochTotals::from_json(json.at("run"));
  } catch (const Json::exception& error) {
    fail("{}: damaged description: {}", place, error.what());
  }

  // everything is read and checked before anything is changed
  const bool keeps = !sgd.residual().empty();
  const SafetensorsReader first = part_of(rank_file(checkpoint, 0), at.step);
  const size_t kept = first.tensor("residual").as<float>().size();
  check(keeps == (kept > 0),
        "{}: sparsifier is {} in the checkpoint, {} in this run; only one of them keeps a residual",
        place, old_sparsifier, config.sparsifier);
  check(sgd.local_momentum().empty() != first.has("local_momentum"),
        "{}: one of the checkpoint and this run has momentum before the selection "
        "(momentum-correction), the other has not",
        place);
  const SafetensorsReader momentum = part_of(checkpoint / "momentum.safetensors", at.step);
  const auto m = flat_from(momentum, "momentum", sgd.momentum().size());
  HostFloats live = model.arena().host_statistics();
  const std::span<float> statistics = live.span();
  if (old_ranks == comm.size()) {
    const OwnState own(rank_file(checkpoint, comm.rank()), at.step, sgd, statistics.size());
    load_weights(weights, model.arena());
    for (size_t i = 0; auto& [name, values] : own_vectors(sgd)) {
      std::ranges::copy(own.vectors[i++], values.span().begin());
      values.write();
    }
    std::ranges::copy(own.statistics, statistics.begin());
    for (size_t i = 0; const std::span<std::byte> state : sgd.exchange_state())
      if (!state.empty()) std::ranges::copy(std::as_bytes(own.exchanges[i++]), state.begin());
  } else {
    load_weights(weights, model.arena());
    redistribute(comm, checkpoint, at.step, old_ranks, sgd, statistics);
    resumed.notice += fmt::format("{} ranks became {}: residuals were summed and dealt out again; ",
                                  old_ranks, comm.size());
  }
  live.write();
  HostFloats remembered = sgd.host_momentum();
  std::ranges::copy(m, remembered.span().begin());
  remembered.write();
  const int64_t consumed = at.batch * old_ranks * old_batch;
  at.batch = consumed / (comm.size() * config.batch_size * config.accumulate);
  return resumed;
}

}  // namespace tw
