// eval: the accuracy of a trained network, by class.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/common/classifier.h"
#include "apps/common/console.h"
#include "apps/common/launch.h"
#include "apps/common/outputs.h"
#include "apps/common/version.h"
#include "apps/eval/confusion.h"
#include "data/class_names.h"
#include "data/dataset.h"
#include "data/tally.h"
#include "data/wrappers.h"
#include "engine/core/utf8.h"
#include "engine/io/csv.h"
#include "engine/io/file.h"
#include "engine/io/json.h"

namespace {

using namespace tw;
namespace fs = std::filesystem;

constexpr const char* kAuto = "auto";
constexpr const char *kSummary = "summary.json", *kClasses = "classes.csv",
                     *kConfusion = "confusion.csv";

struct EvalConfig {
  ClassifierOptions network;
  std::string dir, dataset = kAuto, class_map = "names", output_dir, save;

  OptionTable table();
};

OptionTable EvalConfig::table() {
  OptionTable t;
  t.group("Files");
  network.add_run(t);
  t.add("data-dir", dir,
        "images: a folder with val, or of class folders, or another data set; also without the "
        "flag; default: what the run validated on",
        {.positional = true});
  t.add("output-dir", output_dir,
        "folder for summary.json, classes.csv and confusion.csv; default: eval in the run");
  t.add("save", save, "also write a CSV file: image, label, prediction, probability");
  t.group("Data");
  t.add("dataset", dataset, "data set in --data-dir (see train --list); auto: recognised");
  t.add("class-map", class_map,
        "which class of the data is which of the network: names, or DATA=NETWORK,... for others");
  network.add_network(t);
  network.add_machine(t);
  return t;
}

/// The folder of the run that a file of weights belongs to; empty for other files.
fs::path run_of(const fs::path& weights) {
  const fs::path run = fs::absolute(weights).parent_path().parent_path().parent_path();
  return fs::exists(run / "config.json") ? run : "";
}

/// The folder for the results; empty: none. UserError where they cannot be written.
fs::path output_folder(const std::string& given, const fs::path& run, const std::string& save) {
  fs::path folder = given;
  if (given.empty() && !run.empty()) folder = run / "eval";
  if (folder.empty()) return folder;
  check_folder_writable(folder);
  std::error_code ignored;
  check(!fs::exists(folder / "config.json", ignored),
        "[options] output-dir is {}, the folder of a run, which has a summary.json of its own",
        given);
  check_replaceable(folder / kSummary, "{\n  \"weights\"", "an evaluation");
  check_replaceable(folder / kClasses, "class,", "a table of classes");
  check_replaceable(folder / kConfusion, "label,", "a table of counts");
  for (const char* name : {kSummary, kClasses, kConfusion})
    check(save.empty() || !same_place(save, folder / name),
          "[options] save is {}, which the evaluation replaces", save);
  return folder;
}

/// What the run in this folder read, by its config.json.
void read_run_options(const fs::path& run, std::string& dataset, DataConfig& data) {
  const fs::path file = run / "config.json";
  const Json options = parse_json<Json>(read_text(file, kMostJson), file.string());
  try {
    if (dataset == kAuto) options.at("dataset").get_to(dataset);
    data.dir = options.at("data_dir").get<std::string>();
    const int64_t size = integer_of(options.at("val_size"));
    check(size >= 0, "[eval] {}: val_size is {}; expected 0 or more", file.string(), size);
    data.val_size = static_cast<size_t>(size);
    const Json split = options.value("val_split", Json());
    if (split.is_number()) data.val_split = split.get<double>();
    check(!data.val_split || (*data.val_split >= 0 && *data.val_split <= DataConfig::kMostValSplit),
          "[eval] {}: val_split is {}; expected 0 to {}", file.string(), split.dump(),
          DataConfig::kMostValSplit);
  } catch (const Json::exception& error) {
    fail("[eval] {}: {:.200}", file.string(), error.what());
  }
}

/// Opens all images of --data-dir, or those that the run validated on. Returns what they are, too.
std::pair<DataSplit, std::string> open_images(const EvalConfig& config,
                                              const TrainedNetwork& network, const fs::path& run) {
  DataConfig data{.dir = config.dir,
                  .image_size = network.spec.image[0],
                  .exif_orientation = network.exif_orientation,
                  .crops_border = network.crops_border(),
                  .whole = !config.dir.empty()};
  std::string dataset = config.dataset;
  if (!data.whole) {
    check(!run.empty(),
          "[eval] {} is not in the folder of a run, which names its data; give a folder of images",
          network.weights.path().string());
    read_run_options(run, dataset, data);
  }
  std::error_code ignored;
  check(data.dir.empty() || fs::exists(data.dir, ignored), "[eval] there is no {} here{}",
        data.dir.string(),
        data.whole ? "" : ", where the run has its images; give a folder of images");
  if (dataset == kAuto) dataset = dataset_of(data.dir);
  const DatasetEntry& entry = datasets().find(dataset).value;
  check(!data.whole || !entry.generated, "[eval] {} makes its images itself; it reads none of {}",
        dataset, config.dir);
  DataSplit split = entry(data);
  if (!split.left_out.empty()) fmt::print("data not read: {}\n", printable(split.left_out));
  const size_t then = network.validation_images, now = split.val->size();
  if (!data.whole && then > 0 && then != now)
    fmt::print(
        "the run validated on {} images, this folder now has {}: it may have trained on some\n",
        then, now);
  if (DataConfig own; data.whole && !run.empty() && then > 0 && then < now) {
    std::string of_run;
    read_run_options(run, of_run, own);
    if (fs::equivalent(own.dir, data.dir, ignored))
      fmt::print("the run trained on most of these images; `eval RUN` takes those held out\n");
  }
  const std::string folder = data.dir.empty() ? dataset : data.dir.string();
  const std::string source = fmt::format("{}, {}", folder, split.val_name);
  return {std::move(split), source};
}

/// The validation images with the labels of the network.
std::shared_ptr<const Dataset> with_labels_of(const TrainedNetwork& network, const DataSplit& data,
                                              const std::string& map) {
  const int64_t outputs = network.spec.classes;
  if (data.class_names.empty() || network.class_names.empty()) {
    check(data.val->classes <= outputs, "[classes] the data has {} classes, {} has {} outputs",
          data.val->classes, network.model, outputs);
    fmt::print("output i is taken for class i of the data: the {} no classes\n",
               network.class_names.empty() ? "weights name" : "data names");
    return data.val;
  }
  const bool named = map.find('=') != map.npos;
  const char* area = named ? kOfClassMap : "[eval] --class-map gives classes other names";
  return relabel(data.val, class_map(map, data.class_names, network.class_names, area), outputs);
}

std::string percent(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.4f}", *ratio) : "-";
}

std::string taken_for(const Confusion::Class& one) {
  if (one.mistakes == 0) return "-";
  const int64_t more = one.equally_mistaken;
  return fmt::format(
      "{} ({}){}", printable(one.mistaken), one.mistakes,
      more == 0 ? "" : fmt::format("; {} other class{} as often", more, more == 1 ? "" : "es"));
}

/// The classes with images: all of them, or those with the lowest recall.
void print_classes(const Confusion& confusion) {
  constexpr size_t kMostRows = 20;
  std::vector<Confusion::Class> rows;
  for (const Confusion::Class& one : confusion.classes())
    if (one.images > 0 || one.predicted > 0) rows.push_back(one);
  if (rows.size() > kMostRows) {
    std::ranges::stable_sort(rows, {}, [](const auto& one) { return one.recall().value_or(2); });
    fmt::print("the {} of {} classes with the lowest recall:\n", kMostRows, rows.size());
    rows.resize(kMostRows);
  }
  fmt::print("{:<24} {:>8} {:>9} {:>9}  {}\n", "class", "images", "precision", "recall",
             "most often taken for");
  for (const auto& one : rows)
    fmt::print("{:<24} {:>8} {:>9} {:>9}  {}\n", printable(one.name), one.images,
               percent(one.precision()), percent(one.recall()), taken_for(one));
}

int run(int argc, char** argv) {
  EvalConfig config;
  config.table().parse_and_set(
      argc, argv,
      "eval: accuracy of a trained network, precision and recall by class, "
      "and which classes it confuses");
  check_save(config.save);
  Classifier classifier(config.network, "eval");
  const TrainedNetwork& network = classifier.network();
  const fs::path run = run_of(network.weights.path()),
                 folder = output_folder(config.output_dir, run, config.save);
  const auto [data, source] = open_images(config, network, run);
  classifier.normalise_as(data.mean, data.deviation);
  const auto skipped = std::make_shared<SkipLog>();
  std::shared_ptr<const Dataset> images = with_labels_of(network, data, config.class_map);
  if (classifier.skips_bad()) images = skip_bad(images, skipped);

  const std::vector<std::string> names = classifier.class_names();
  Confusion confusion(names);
  std::string predictions = fmt::format("{},label,prediction,probability\n", kImageColumn);
  classifier.classify(images, [&](size_t i, int32_t label, std::span<const float> logits,
                                  std::span<const float> row) {
    if (label < 0) return;
    confusion.add(static_cast<size_t>(label), logits);
    if (config.save.empty()) return;
    const auto best = static_cast<size_t>(std::ranges::max_element(logits) - logits.begin());
    predictions +=
        fmt::format("{},{},{},{:.6g}\n", csv_cell(images->name(i)),
                    csv_cell(names[static_cast<size_t>(label)]), csv_cell(names[best]), row[best]);
  });
  const int64_t count = confusion.images();
  Tally bad;
  for (const SkipLog::Entry& entry : skipped->take()) bad.add(entry.class_name, entry.description);
  check(count > 0, "[eval] {}: all images are damaged: {}", source, skipped_text(bad));
  fmt::print("{}", printable(skipped_text(bad), "\n"));

  const auto share = [&](int64_t part) {
    return static_cast<double>(part) / static_cast<double>(count);
  };
  if (!config.save.empty()) write_output(config.save, predictions);
  fmt::print("{}: {}, {} images of {}\n", printable(network.weights.path().string()), network.model,
             count, printable(source));
  print_classes(confusion);
  fmt::print("top-1 {:.4f} ({} of {}){}\n", share(confusion.top1()), confusion.top1(), count,
             top5_text(", ", share(confusion.top5()), network.spec.classes));

  if (folder.empty()) return 0;
  Json summary = {{"weights", network.weights.path().string()},
                  {"model", network.model},
                  {"data", source},
                  {"images", count},
                  {"skipped", bad.count()},
                  {"top1", share(confusion.top1())},
                  {"top5", share(confusion.top5())},
                  {"build", provenance_json()}};
  const Json last = parse_json_if_valid<Json>(read_text_if_any(folder / kSummary, kMostJson));
  if (const Json before = last.is_object() ? last.value("data", Json()) : Json();
      before.is_string() && before != summary["data"])
    fmt::print("replaces the evaluation of {}\n", printable(before.get<std::string>()));
  create_folders_durably(folder);
  write_together(folder, {{kConfusion, confusion.matrix_csv()},
                          {kClasses, confusion.classes_csv()},
                          {kSummary, summary.dump(2) + "\n"}});
  fmt::print("written to {}\n", printable(folder.string()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tw::run_program(argv, [&](tw::Communicator&) { return run(argc, argv); });
}
