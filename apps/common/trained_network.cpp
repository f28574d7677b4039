#include "apps/export/source.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/common/checkpoint_folder.h"
#include "engine/core/error.h"
#include "engine/io/json.h"
#include "engine/io/weights.h"

namespace tw {

namespace {

/// The value of a key of the metadata; null if it is missing.
nlohmann::json value_of(const SafetensorsReader& weights, const char* key) {
  const auto found = weights.metadata().find(key);
  if (found == weights.metadata().end()) return {};
  return parse_json<nlohmann::json>(found->second,
                                    fmt::format("[export] {}: {}", weights.path().string(), key));
}

constexpr int64_t kMostSide = 4096;  // as of --image-size; oneDNN overflows at 65,535

/// The shape of the images that the metadata states.
Shape image_of(const nlohmann::json& value, const std::string& file) {
  std::vector<int64_t> sides;
  for (const auto& side : value) sides.push_back(integer_of(side));
  const bool valid = sides.size() == 3 && std::ranges::all_of(sides, [](int64_t side) {
                       return side >= 1 && side <= kMostSide;
                     });
  check(valid, "[export] {}: image is {:.100}; expected [height, width, channels], each 1 to {}",
        file, value.dump(), kMostSide);
  return Shape(sides);
}

/// The number of classes: the length of the bias of the last layer.
int64_t classes_of(const SafetensorsReader& weights, const ParameterArena& arena) {
  const std::string& bias = arena.parameters().back().name;
  const Shape& shape = weights.tensor(bias).shape;
  check(shape.rank() == 1, "[export] {}: {} has shape {}; expected (classes)",
        weights.path().string(), bias, shape);
  return shape[0];
}

}  // namespace

ExportSource find_source(const SourceOptions& options) {
  ExportSource source{read_weights_file(weights_file(options.path, "export"), "export"),
                      options.model,
                      {},
                      {},
                      {},
                      {}};
  const std::string file = source.weights.path().string();
  try {
    const nlohmann::json run = value_of(source.weights, "thinwire"),
                         image = value_of(source.weights, "image"),
                         normalisation = value_of(source.weights, "normalisation");
    if (source.model.empty() && run.is_object()) run.at("config").at("model").get_to(source.model);
    if (image.is_array()) source.spec.image = image_of(image, file);
    if (normalisation.is_object()) {
      normalisation.at("mean").get_to(source.mean);
      normalisation.at("deviation").get_to(source.deviation);
    }
    check(!source.model.empty(), "[export] {} does not name its network; give --model", file);
    check(image.is_array() || options.image_size > 0,
          "[export] {} does not say the size of its images; give --image-size", file);
  } catch (const nlohmann::json::exception& error) {
    fail("[export] {}: damaged metadata: {}", file, error.what());
  }
  if (options.image_size > 0) source.spec.image[0] = source.spec.image[1] = options.image_size;
  const Model model(source.model, source.spec);
  source.dropped_prefix = drop_prefix(source.weights, model.arena());
  source.spec.classes = classes_of(source.weights, model.arena());
  return source;
}

}  // namespace tw
