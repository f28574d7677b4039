#include "apps/train/checkpoint_description.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "apps/common/rank_utils.h"
#include "apps/train/run_folder.h"
#include "apps/train/summary.h"
#include "data/class_names.h"
#include "data/wrappers.h"
#include "engine/core/error.h"
#include "engine/io/json.h"
#include "sparsify/exchange.h"

namespace tw {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFormat = "thinwire checkpoint 1";

// far above any real run, so that products of them do not overflow
constexpr int64_t kMostRanks = int64_t{1} << 20, kMostCounted = int64_t{1} << 40;

/// The options that decide the weights.
Json description_of(TrainConfig config) {
  Json json = Json::object();
  const OptionTable table = config.table();
  const Json all = config.json();
  for (const auto& [key, value] : all.items())
    if (table.effect_of(key) != Effect::none) json[key] = value;
  return json;
}

/// Notes how this run differs from the options of the checkpoint. UserError where an essential one
/// does.
void compare(const Json& then, const TrainConfig& config, const fs::path& checkpoint,
             Saved& saved) {
  const std::vector<Difference> all = differences(then, config);
  const std::string prefix = fmt::format("[resume] {}", checkpoint.string());
  const fs::path options = checkpoint.parent_path().parent_path() / "config.json";
  const std::string cure =
      config.resumes_last() ? "; --resume with the folder of the run takes its options"
      : fs::exists(options)
          ? ""
          : fmt::format("; {}, which holds the options of the run, is missing", options.string());
  for (const auto& [key, was, is, effect] : all)
    if (effect == Effect::essential)
      fail("{}: {} is {} in the checkpoint, {} in this run{}", prefix, key, then.at(key).dump(),
           is.dump(), cure);
  saved.before = config;
  for (const auto& [key, was, is, effect] : all) {
    if (key == kNodeSetting && !config.forms_nodes()) continue;  // of the link alone
    add_notice(saved.resumed.notice,
               fmt::format("{} was {}, is now {}", key, was.dump(), is.dump()));
    if (was.is_null()) continue;  // a checkpoint of an older version may lack options
    set_option(saved.before, key, was, prefix);
    if (effect == Effect::experiment && saved.other_experiment.empty())
      saved.other_experiment =
          fmt::format("{} is {} in the checkpoint, {} in this run", key, was.dump(), is.dump());
  }
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

}  // namespace

void add_notice(std::string& notice, const std::string& text) {
  notice += (notice.empty() ? "" : "; ") + text;
}

std::string subject(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0                  ? ""
             : i + 1 == names.size() ? " and "
                                     : ", ") +
            (names[i] == kStatistics ? "batch-norm statistics" : names[i]);
  std::ranges::replace(text, '_', ' ');
  return text + (names.size() == 1 && names[0] != kStatistics ? " is" : " are");
}

std::string averaged(const std::vector<std::string>& names, int64_t ranks) {
  if (names.empty()) return "";
  return subject(names) +
         (ranks == 1 ? " as on the one rank" : fmt::format(" the mean of the {} ranks", ranks));
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
    const fs::path checkpoint = find_run_folder(config, ranks).checkpoint;
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
    for (auto* half : {&mapped.train, &mapped.val, &mapped.test})
      if (*half) *half = relabel(*half, labels, std::ssize(mapped.class_names));
  });
  return mapped;
}

std::map<std::string, std::string> describe(const TrainConfig& config, const Position& at,
                                            int ranks) {
  Json json = {{"config", description_of(config)}, {"ranks", ranks}, {"images", config.images}};
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
    saved.ranks = integer_of(json.at("ranks"));
    const int64_t images = integer_of(then.at("batch_size")),
                  batches = integer_of(then.value("accumulate", Json(1)));
    check(images >= 1 && images <= kMostRanks && batches >= 1 && batches <= kMostRanks,
          "{}: damaged description: {} batches of {} images", prefix, batches, images);
    saved.batch = images * batches;
    compare(then, config, checkpoint, saved);
    saved.resumed.note = check_classes(weights, config);
    const auto before = json.value("images", config.images);  // older versions lack them
    if (before != config.images && !config.eval_only)
      add_notice(saved.resumed.notice,
                 fmt::format("training and validation images were {}, are now {}",
                             fmt::join(before, " and "), fmt::join(config.images, " and ")));
    at = Position::from_json(json);
  } catch (const Json::exception& error) {
    fail("{}: damaged description: {:.200}", prefix, error.what());
  }
  const auto possible = [](int64_t number) { return number >= 0 && number <= kMostCounted; };
  check(saved.ranks >= 1 && saved.ranks <= kMostRanks && saved.batch >= 1 &&
            saved.batch <= kMostRanks && possible(at.step) && possible(at.epoch) &&
            possible(at.batch) && at.batch <= kMostCounted / (saved.ranks * saved.batch),
        "{}: damaged description: {} ranks of {} images at step {}, epoch {}, batch {}", prefix,
        saved.ranks, saved.batch, at.step, at.epoch, at.batch);
  return saved;
}

}  // namespace tw
