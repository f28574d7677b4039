// predict: names the classes of images by a trained network.
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "apps/common/classifier.h"
#include "apps/common/launch.h"
#include "data/imagenet/image_files.h"
#include "data/wrappers.h"
#include "engine/core/utf8.h"
#include "engine/io/csv.h"
#include "engine/io/file.h"

namespace {

using namespace tw;

struct PredictConfig {
  ClassifierOptions network;
  std::vector<std::string> images;
  std::string save;
  int64_t top = 3;

  OptionTable table();
};

OptionTable PredictConfig::table() {
  OptionTable t;
  t.group("Files");
  network.add_run(t);
  t.add("images", images, "image files, or folders of them; also without the flag, several of them",
        {.required = true, .positional = true});
  t.add("save", save,
        "also write a CSV file: image, prediction, and the probability of each class");
  t.group("Output");
  t.add("top", top, "classes to print for an image, the most probable first", {.least = 1});
  network.add_network(t);
  network.add_machine(t);
  return t;
}

/// The images as the validation of the network reads them.
std::shared_ptr<const Dataset> open_images(const std::vector<std::string>& paths,
                                           const TrainedNetwork& network) {
  const auto files = std::make_shared<const ImageFiles>(paths);
  if (!files->left_out().empty())
    write_error_line(printable("not read: " + left_out_text(files->left_out())));
  return std::make_shared<ImageDataset>(files,
                                        ImageOptions{.classes = network.spec.classes,
                                                     .image_size = network.spec.image[0],
                                                     .exif_orientation = network.exif_orientation,
                                                     .crops_border = network.crops_border()});
}

int run(int argc, char** argv) {
  PredictConfig config;
  config.table().parse_and_set(
      argc, argv, "predict: the most probable classes of images, by a trained network");
  check_save(config.save);
  Classifier classifier(config.network, "predict");
  const std::vector<std::string> names = classifier.class_names();
  const std::shared_ptr<const Dataset> files = open_images(config.images, classifier.network());
  classifier.normalise_as(kImageMean, kImageDeviation);
  const auto skipped = std::make_shared<SkipLog>();

  std::string table = fmt::format("{},prediction", kImageColumn);
  for (const std::string& name : names) table += fmt::format(",{}", csv_cell(name));
  table += "\n";
  const auto top = std::min(names.size(), static_cast<size_t>(config.top));
  std::vector<size_t> order(names.size());
  size_t predicted = 0;
  const auto tell = [&](size_t i, int32_t label, std::span<const float> logits,
                        std::span<const float> probabilities) {
    if (label < 0) return;
    ++predicted;
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t k) { return logits[k]; });
    std::string line = files->name(i) + ":";
    for (const size_t k : std::span(order).first(top))
      line += fmt::format("{} {} {:.4f}", k == order[0] ? "" : ",", names[k], probabilities[k]);
    std::fputs((printable(line) + "\n").c_str(), stdout);  // a fault is seen after the file
    if (config.save.empty()) return;
    table += fmt::format("{},{}", csv_cell(files->name(i)), csv_cell(names[order[0]]));
    for (const float p : probabilities) table += fmt::format(",{:.6g}", p);
    table += "\n";
  };
  classifier.classify(classifier.skips_bad() ? skip_bad(files, skipped) : files, tell);
  const std::vector<SkipLog::Entry> damaged = skipped->take();
  check(predicted > 0, "[predict] all images are damaged: {}",
        damaged.empty() ? "" : damaged.front().description);
  for (const SkipLog::Entry& entry : damaged)
    write_error_line(printable("skipped: " + entry.description));
  if (!config.save.empty()) write_output(config.save, table);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tw::run_program(argv, [&](tw::Communicator&) { return run(argc, argv); });
}
