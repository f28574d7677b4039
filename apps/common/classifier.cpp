#include "apps/common/classifier.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "data/device_prefetcher.h"
#include "engine/core/copy.h"
#include "engine/io/file.h"

namespace tw {

namespace {

bool finite(float x) { return std::isfinite(x); }

/// The softmax of one row of logits.
void to_probabilities(std::span<const float> logits, std::span<float> probabilities) {
  const float most = std::ranges::max(logits);
  float sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) sum += probabilities[i] = std::exp(logits[i] - most);
  for (float& value : probabilities) value /= sum;
}

}  // namespace

void ClassifierOptions::add_run(OptionTable& table) {
  table.add("run", run,
            "folder of a run or checkpoint, or a safetensors file; also without the flag",
            {.required = true, .positional = true});
}

void ClassifierOptions::add_network(OptionTable& table) {
  table.group("Network");
  table.add("model", model, "network, for files that do not name it (see train --list)",
            {.suggestions = models().names()});
  table.add("image-size", image_size, "side of the images in pixels; 0: as in training",
            {.most = 4096});
}

void ClassifierOptions::add_machine(OptionTable& table) {
  table.group("Machine");
  table.add("device", device, "where the network runs; auto: the GPU if there is one",
            {.none = "auto"});
  table.add("precision", precision, "numbers of the network");
  table.add("batch-size", batch_size, "images at a time",
            {.least = 1, .most = 1 << 20, .letter = 'b'});
  table.add("threads-per-rank", threads, "CPU threads; 0: all cores", {.most = 1024});
  table.add("loader-threads", loader_threads,
            "threads that read images; 0: none besides the others", {.most = 1024});
  table.add("bad-images", bad_images,
            "end the program at a damaged image, or leave it out; auto: as the training does",
            {.none = "auto"});
}

void check_save(const std::string& save) {
  if (save.empty()) return;
  check_writable(save);
  check_replaceable(save, fmt::format("{},", kImageColumn), "a table of predictions");
  std::signal(SIGPIPE, SIG_IGN);  // whoever reads the lines, as head, may end before the file
}

Classifier::Classifier(const ClassifierOptions& options, const char* area)
    : area_(area),
      options_(options),
      network_(open_network(
          {.path = options.run, .model = options.model, .image_size = options.image_size}, area)),
      ctx_(resolve_device(options.device), resolve_threads(options.threads, 1)) {
  check(options.precision != Precision::tf32 || ctx_.device() == Device::cuda,
        "[options] precision is tf32, which only a GPU has; expected f32 or bf16");
  ctx_.set_math({.tf32 = options_.precision == Precision::tf32, .deterministic = false});
}

void Classifier::normalise_as(const std::vector<float>& mean, const std::vector<float>& deviation) {
  if (network_.normalised) return;
  network_.mean = mean;
  network_.deviation = deviation;
  write_error_line(
      fmt::format("the weights name no mean and deviation of their images: taken are "
                  "{:g} and {:g}",
                  fmt::join(mean, ", "), fmt::join(deviation, ", ")));
}

std::vector<std::string> Classifier::class_names() const {
  std::vector<std::string> names = network_.class_names;
  for (auto i = std::ssize(names); i < network_.spec.classes; ++i)
    names.push_back(std::to_string(i));
  return names;
}

void Classifier::classify(const std::shared_ptr<const Dataset>& images, const Visit& visit) {
  check(images->image == network_.spec.image, "[data] the images are {}; {} takes {}",
        images->image, network_.model, network_.spec.image);
  Loader loader(images, {.batch = options_.batch_size,
                         .training = false,
                         .threads = static_cast<int>(options_.loader_threads),
                         .device = ctx_.device()});
  const std::unique_ptr<Model> model =
      load_network(ctx_, network_, options_.batch_size, activations_of(options_.precision));
  DevicePrefetcher feed(ctx_, loader);
  feed.start(0);
  const auto outputs = static_cast<size_t>(network_.spec.classes),
             batch = static_cast<size_t>(options_.batch_size);
  std::vector<float> logits(batch * outputs), probabilities(outputs);
  std::vector<int32_t> labels(batch);
  for (size_t first = 0; first < images->size(); first += batch) {
    feed.next(model->images(), model->labels());
    model->queue_forward({.ctx = ctx_, .training = false});
    feed.prefetch();
    copy_to_host(ctx_, model->logits().as<float>(), logits);
    copy_bytes(ctx_, std::as_bytes(model->labels().as<int32_t>()),
               std::as_writable_bytes(std::span(labels)));
    for (size_t i = 0; i < std::min(batch, images->size() - first); ++i) {
      const std::span row = std::span(logits).subspan(i * outputs, outputs);
      check<CollectiveFault>(labels[i] < 0 || std::ranges::all_of(row, finite),
                             "[{}] {}: the network gives numbers that are not finite", area_,
                             images->name(first + i));
      to_probabilities(row, probabilities);
      visit(first + i, labels[i], row, probabilities);
    }
  }
}

}  // namespace tw
