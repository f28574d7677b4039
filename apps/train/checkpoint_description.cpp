#include "apps/train/checkpoint_description.h"

#include <algorithm>
#include <optional>

#include "apps/common/rank_utils.h"
#include "apps/train/run_folder.h"
#include "apps/train/summary.h"
#include "data/class_names.h"
#include "data/wrappers.h"
#include "engine/core/error.h"
#include "engine/io/json.h"

namespace tw {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFormat = "thinwire checkpoint 1";

// far above any real run, so that products of them do not overflow
constexpr int64_t kMostRanks = int64_t{1} << 20, kMostCounted = int64_t{1} << 40;

/// The options that decide the weights.
Json description_of(TrainConfig config) {
  Json json = config.json();
  for (const std::string& key : config.table().keys(Effect::none)) json.erase(key);
  return json;
}

/// Options that make a run another experiment, as the settings of --set do.
constexpr const char* kExperiment[] = {
    "sparsifier",  "density",  "density_warmup",    "selector",
    "exchange",    "scope",    "no_error_feedback", "residual_decay",
    "local_steps", "outer_lr", "outer_momentum",    "momentum_correction"};

/// The options as one level, those of --set by their dotted names.
Json flattened(const Json& config) {
  Json all = config;
  if (all.contains("set")) all.update(config.at("set"));
  all.erase("set");
  return all;
}

/// Compares the options of the checkpoint with those of this run: UserError where an essential one
/// differs, a notice for each other one that changes the weights.
void compare(const Json& then, const TrainConfig& config, const std::string& prefix,
             std::string& notice) {
  TrainConfig copy = config;
  const Json all = copy.json();
  const char* const cure =
      config.resume == "auto" ? "; --resume with the folder of the run takes its options" : "";
  for (const std::string& key : copy.table().keys(Effect::essential))
    check(then.at(key) == all.at(key), "{}: {} is {} in the checkpoint, {} in this run{}", prefix,
          key, then.at(key).dump(), all.at(key).dump(), cure);
  const Json now = flattened(description_of(config)), before = flattened(then);
  for (const auto& [key, value] : now.items()) {
    if (!before.contains(key) || before[key] != value)
      add_notice(notice, fmt::format("{} was {}, is now {}", key, before.value(key, Json()).dump(),
                                     value.dump()));
  }
}

/// How this run is another experiment than that of the checkpoint; empty if it is not. A checkpoint
/// of an older version may lack options.
std::string other_experiment(const Json& then, TrainConfig config) {
  const Json all = config.json(), now = flattened(all), before = flattened(then);
  std::vector<std::string> keys(std::begin(kExperiment), std::end(kExperiment));
  for (const auto& [key, value] : all.at("set").items()) keys.push_back(key);
  for (const std::string& key : keys)
    if (before.contains(key) && before[key] != now.at(key))
      return fmt::format("{} is {} in the checkpoint, {} in this run", key, before[key].dump(),
                         now.at(key).dump());
  return "";
}

/// The names of the classes as JSON in the metadata; empty: unknown.
std::string names_in(const SafetensorsReader& weights) {
  const auto found = weights.metadata().find("classes");
  return found == weights.metadata().end() ? "" : found->second;
}

std::vector<std::string> parsed_names(const std::string& json, const std::string& prefix) try {
  if (json.empty()) return {};
  return parse_json<Json>(json, prefix).get<std::vector<std::string>>();
} catch (const Json::exception& error) {
  fail("{}: damaged names of classes: {:.200}", prefix, error.what());
}

/// `config` with those options of the checkpoint that decide what its optimizer keeps.
TrainConfig with_optimizer_of(const Json& then, TrainConfig config, const std::string& prefix) {
  const Json before = flattened(then);
  std::vector<std::string> keys(std::begin(kExperiment), std::end(kExperiment));
  for (const char* key : {"bucket_mib", "momentum", "freeze"}) keys.push_back(key);
  for (const auto& [key, value] : config.settings.values()) keys.push_back(key);
  for (const std::string& key : keys)
    if (before.contains(key)) set_option(config, key, before[key], prefix);
  return config;
}

}  // namespace

void add_notice(std::string& notice, const std::string& text) {
  notice += (notice.empty() ? "" : "; ") + text;
}

std::string check_classes(const SafetensorsReader& weights, const TrainConfig& config) {
  if (config.class_names.empty()) return "";
  const std::string prefix = fmt::format("[classes] {}", weights.path().string());
  const std::vector<std::string> theirs = parsed_names(names_in(weights), prefix);
  if (theirs.empty())
    return fmt::format("{} names no classes: output i is taken for class i of the data",
                       weights.path().string());
  const std::string difference = class_difference(config.class_names, theirs);
  check(difference.empty(),
        "{}: {}; --class-map names maps the labels by name, --class-map DATA=WEIGHTS classes with "
        "other names; --pretrained with --reset-head starts a new last layer",
        prefix, difference);
  return "";
}

DataSplit map_classes(Communicator& comm, const TrainConfig& config, int ranks,
                      const DataSplit& data) {
  DataSplit mapped = data;
  std::string names;
  run_collectively(comm, [&] {
    if (comm.rank() > 0) return;  // the others may lack the file
    const std::filesystem::path checkpoint = find_checkpoint(config, ranks);
    check(!checkpoint.empty() || !config.pretrained.empty(),
          "[options] class-map maps to the classes of weights; there is no checkpoint to resume");
    const SafetensorsReader weights =
        checkpoint.empty() ? read_weights_file(config.pretrained, "--pretrained")
                           : read_weights_file(checkpoint / "model.safetensors", "--resume");
    names = names_in(weights);
    check(!names.empty(), "[classes] {} names no classes; class-map has nothing to map to",
          weights.path().string());
  });
  names = broadcast_text(comm, names);
  run_collectively(comm, [&] {
    check(!data.class_names.empty(), "[classes] {} has no names of classes to map", config.dataset);
    mapped.class_names = parsed_names(names, "[classes] the weights");
    const std::vector<int32_t> labels =
        class_map(config.class_map, data.class_names, mapped.class_names);
    for (auto* half : {&mapped.train, &mapped.val})
      *half = relabel(*half, labels, std::ssize(mapped.class_names));
  });
  return mapped;
}

std::map<std::string, std::string> describe(const TrainConfig& config, const Position& at,
                                            int ranks) {
  Json json = {{"config", description_of(config)}, {"ranks", ranks}};
  json.update(at.json());
  return {{"format", kFormat},
          {"thinwire", json.dump()},
          {"classes", Json(config.class_names).dump()},
          {"image", Json({config.image[0], config.image[1], config.image[2]}).dump()},
          {"normalisation", normalisation_of(config).dump()}};
}

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
    const Json json = parse_json<Json>(metadata.at("thinwire"), prefix + ": damaged description");
    const Json& then = json.at("config");
    compare(then, config, prefix, saved.resumed.notice);
    saved.resumed.note = check_classes(weights, config);
    saved.before = with_optimizer_of(then, config, prefix);
    saved.other_experiment = other_experiment(then, config);
    saved.ranks = integer_of(json.at("ranks"));
    const int64_t images = integer_of(then.at("batch_size")),
                  batches = integer_of(then.value("accumulate", Json(1)));
    check(images >= 1 && images <= kMostRanks && batches >= 1 && batches <= kMostRanks,
          "{}: damaged description: {} batches of {} images", prefix, batches, images);
    saved.batch = images * batches;
    at = Position::from_json(json);
  } catch (const Json::exception& error) {
    fail("{}: damaged description: {:.200}", prefix, error.what());
  }
  const auto possible = [](int64_t number) { return number >= 0 && number <= kMostCounted; };
  check(saved.ranks >= 1 && saved.ranks <= kMostRanks && saved.batch >= 1 &&
            saved.batch <= kMostRanks && possible(at.step) && possible(at.epoch) &&
            possible(at.batch),
        "{}: damaged description: {} ranks of {} images at step {}, epoch {}, batch {}", prefix,
        saved.ranks, saved.batch, at.step, at.epoch, at.batch);
  return saved;
}

}  // namespace tw
