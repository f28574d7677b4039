// Reads the configuration of a run: JSON files and flags.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/common/checkpoint_folder.h"
#include "apps/train/config.h"
#include "engine/core/error.h"
#include "engine/io/file.h"
#include "engine/io/json.h"

namespace tw {

namespace {

/// Keys of a configuration that are not options: settings, a description of the run, and lists of
/// values to combine.
constexpr const char* kRunKeys[] = {"set", "run", "sweep"};

/// The keys of "sweep" with their values.
std::vector<SweepKey> sweep_in(const Json& object, const OptionTable& table,
                               const std::string& prefix) {
  check(object.is_object(), "{}: \"sweep\" is not an object of key: list of values", prefix);
  const std::vector<std::string> fixed = table.keys(kUnswept);
  std::vector<SweepKey> sweep;
  for (const auto& [key, values] : object.items()) {
    check(values.is_array() && !values.empty(),
          "{}: sweep: {} is {:.200}; expected a list of values", prefix, key, values.dump());
    check(std::ranges::find(fixed, key) == fixed.end(), "{}: sweep: {} cannot be varied", prefix,
          key);
    sweep.push_back({key, values});
  }
  return sweep;
}

void apply_file(TrainConfig& config, OptionTable& table, const RunOptions& options) {
  const std::string prefix = fmt::format("[config] {}", options.file);
  Json file = parse_json<Json>(options.text, prefix);
  check(file.is_object(), "{}: not a JSON object", prefix);
  if (file.contains("set")) {
    check(file["set"].is_object(), "{}: \"set\" is not an object of key: value", prefix);
    for (const auto& [key, value] : file["set"].items())
      config.settings.set(key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  check(!file.contains("config"), "{}: \"config\" names a file on the command line; remove it here",
        prefix);
  check(file.value("resume", Json("auto")) == "auto",
        "{}: \"resume\" is auto here; --resume names a run on the command line", prefix);
  if (file.contains("sweep")) config.sweep = sweep_in(file["sweep"], table, prefix);
  if (const Json run = file.value("run", Json()); run.is_object())
    if (const Json ranks = run.value("ranks", Json()); ranks.is_number_integer())
      config.ranks_before = integer_of(ranks);
  for (const char* key : kRunKeys) file.erase(key);
  table.set_json(file, prefix);
}

/// The value of a flag; empty when it is not given.
std::string value_of(const OptionTable::Given& given, const std::string& flag) {
  std::string value;
  for (const auto& [name, text] : given)
    if (name == flag) value = text;
  return value;
}

/// Whether --resume PATH continues in a folder of its own: with a name, of a flag or of the file of
/// --config, that is not that of the run or of its seeds.
bool branches(const TrainConfig& config, const OptionTable::Given& given, const std::string& run) {
  if (!value_of(given, "name").empty()) return true;
  const std::string& name = config.name;
  const bool of_seed = run.starts_with(name + "-s") &&
                       run.find_first_not_of("0123456789", name.size() + 2) == run.npos;
  return !value_of(given, "config").empty() && !config.eval_only && !name.empty() && !run.empty() &&
         run != name && !of_seed;
}

}  // namespace

OptionTable::Given parse_flags(int argc, char** argv) {
  TrainConfig config;
  config.settings = default_settings();
  return config.table().parse(argc, argv,
                              "train: synchronous data-parallel SGD with gradient sparsification");
}

RunOptions read_run_options(const OptionTable::Given& given) {
  const std::filesystem::path resume = value_of(given, "resume");
  if (resume.empty() || resume == "auto") return {};
  // --resume names a run folder, its checkpoints folder or one checkpoint
  const std::filesystem::path asked = std::filesystem::absolute(resume) / "";
  for (const char* run : {"", "..", "../.."}) {
    const std::filesystem::path found = (asked / run / "config.json").lexically_normal();
    if (!std::filesystem::exists(found)) continue;
    const std::string name = weakly_canonical(found.parent_path()).filename().string();
    if (!value_of(given, "config").empty()) return {.name = name};
    // not finished, nor a folder of others with a file of that name
    const bool begins = asked / run == asked && !latest_checkpoint(asked) &&
                        std::filesystem::is_directory(asked / "checkpoints") &&
                        !std::filesystem::exists(asked / "summary.json") &&
                        value_of(given, "name").empty() && value_of(given, "seeds").empty() &&
                        value_of(given, "eval-only").empty();
    return {found.string(), read_text(found, kMostJson), begins ? found.parent_path().string() : "",
            name};
  }
  return {};
}

TrainConfig read_train_config(const OptionTable::Given& given, const RunOptions& run) {
  TrainConfig config;
  config.settings = default_settings();
  OptionTable table = config.table();
  const std::string file = value_of(given, "config"), resume = value_of(given, "resume");
  const bool continues = !resume.empty() && resume != "auto" && run.anew.empty();
  if (!file.empty())
    apply_file(config, table, {file, read_text(file, kMostJson)});
  else if (!run.file.empty())
    apply_file(config, table, run);
  if (file.empty())
    config.ranks_before = 0;  // a resume tells them
  else
    config.changed = table.changed();
  if (continues) config.pretrained.clear();  // the checkpoint has newer weights
  for (const auto& [name, text] : given) {
    config.flags.push_back(name);
    table.set_text(name, text);
    const std::string key = name == "set" ? text.substr(0, text.find('=')) : json_key(name);
    if (name == "set") config.flags.push_back(key);
    std::erase_if(config.sweep, [&](const SweepKey& swept) { return swept.key == key; });
  }
  config.branches = continues && branches(config, given, run.name);
  if (const std::filesystem::path folder = run.anew; !folder.empty()) {
    config.resume = "auto";
    config.name = folder.filename().string();
    config.output_dir = folder.parent_path().string();
  }
  config.lr_given = table.is_set("lr");
  config.model_given = table.is_set("model");
  return config;
}

void set_option(TrainConfig& config, const std::string& key, const Json& value,
                const std::string& source) {
  if (key.find('.') != std::string::npos)
    return config.settings.set(key, value.is_string() ? value.get<std::string>() : value.dump());
  config.table().set_json({{key, value}}, source);
  config.lr_given |= key == "lr";
  config.model_given |= key == "model";
}

}  // namespace tw
