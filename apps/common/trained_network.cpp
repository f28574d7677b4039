#include "apps/common/trained_network.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/common/checkpoint_folder.h"
#include "apps/common/options.h"
#include "data/dataset.h"
#include "engine/core/error.h"
#include "engine/io/json.h"
#include "engine/io/weights.h"

namespace tw {

namespace {

/// The value of a key of the metadata; null if it is missing.
nlohmann::json value_of(const SafetensorsReader& weights, const char* key, const char* area) {
  const auto found = weights.metadata().find(key);
  if (found == weights.metadata().end()) return {};
  return parse_json<nlohmann::json>(found->second,
                                    fmt::format("[{}] {}: {}", area, weights.path().string(), key));
}

constexpr int64_t kMostSide = 4096;  // as of --image-size; oneDNN overflows at 65,535

/// The shape of the images that the metadata states.
Shape image_of(const nlohmann::json& value, const std::string& prefix) {
  std::vector<int64_t> sides;
  for (const auto& side : value) sides.push_back(integer_of(side));
  const bool valid = sides.size() == 3 && std::ranges::all_of(sides, [](int64_t side) {
                       return side >= 1 && side <= kMostSide;
                     });
  check(valid, "{}: image is {:.100}; expected [height, width, channels], each 1 to {}", prefix,
        value.dump(), kMostSide);
  return Shape(sides);
}

/// The number of classes: the length of the bias of the last layer.
int64_t classes_of(const SafetensorsReader& weights, const ParameterArena& arena,
                   const std::string& prefix) {
  const std::string& bias = arena.parameters().back().name;
  const Shape& shape = weights.tensor(bias).shape;
  check(shape.rank() == 1, "{}: {} has shape {}; expected (classes)", prefix, bias, shape);
  return shape[0];
}

}  // namespace

bool TrainedNetwork::crops_border() const {
  const auto& known = datasets().entries();
  const auto found = known.find(dataset);
  return found == known.end() || found->second.value.image_files;
}

TrainedNetwork open_network(const NetworkSource& source, const char* area) {
  TrainedNetwork network{.weights = read_weights_file(weights_file(source.path, area), area),
                         .model = source.model};
  const SafetensorsReader& weights = network.weights;
  const std::string prefix = fmt::format("[{}] {}", area, weights.path().string());
  ModelSpec& spec = network.spec;
  try {
    const nlohmann::json run = value_of(weights, "thinwire", area),
                         image = value_of(weights, "image", area),
                         normalisation = value_of(weights, "normalisation", area),
                         classes = value_of(weights, "classes", area);
    if (run.is_object()) {
      const nlohmann::json& options = run.at("config");
      if (network.model.empty()) options.at("model").get_to(network.model);
      network.dataset = options.value("dataset", "");
      if (run.contains("images")) run.at("images").at(1).get_to(network.validation_images);
      network.exif_orientation = options.value("apply_exif_orientation", false);
      if (options.value("bad_images", "") == word(BadImages::skip))
        network.bad_images = BadImages::skip;
    }
    if (image.is_array()) spec.image = image_of(image, prefix);
    network.normalised = normalisation.is_object();
    if (network.normalised) {
      normalisation.at("mean").get_to(network.mean);
      normalisation.at("deviation").get_to(network.deviation);
    }
    if (classes.is_array()) classes.get_to(network.class_names);
    check(!network.model.empty(), "{} does not name its network; give --model", prefix);
    check(image.is_array() || source.image_size > 0,
          "{} does not say the size of its images; give --image-size", prefix);
  } catch (const nlohmann::json::exception& error) {
    fail("{}: damaged metadata: {}", prefix, error.what());
  }
  if (source.image_size > 0) spec.image[0] = spec.image[1] = source.image_size;
  if (!network.normalised) {
    network.mean.assign(static_cast<size_t>(spec.image[2]), 0);
    network.deviation.assign(static_cast<size_t>(spec.image[2]), 1);
  }
  const Model model(network.model, spec);
  network.dropped_prefix = drop_prefix(network.weights, model.arena());
  spec.classes = classes_of(weights, model.arena(), prefix);
  check(std::ssize(network.class_names) <= spec.classes, "{}: {} class names for {} outputs",
        prefix, network.class_names.size(), spec.classes);
  return network;
}

std::unique_ptr<Model> load_network(Context& ctx, const TrainedNetwork& network, int64_t batch,
                                    DType activations) {
  auto model = std::make_unique<Model>(network.model, network.spec);
  check_weights(network.weights, model->arena());  // before memory for the images of the file
  model->plan(ctx, {.batch = batch,
                    .activations = activations,
                    .mean = network.mean,
                    .deviation = network.deviation});
  model->allocate(ctx, std::nullopt);
  load_weights(network.weights, model->arena());
  model->refresh(ctx);
  return model;
}

}  // namespace tw
