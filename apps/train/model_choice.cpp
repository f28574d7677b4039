// The network and the image size of a run on image files that names no network, and the learning
// rate of image files and of pretrained weights.
#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/common/checkpoint_folder.h"
#include "apps/common/network_choice.h"
#include "apps/train/config.h"
#include "data/dataset.h"
#include "engine/io/file.h"
#include "engine/io/json.h"

namespace tw {

namespace {

/// Takes the network, where none is named, and the size of the images from `model` and `side`;
/// false if there is no network.
bool take(TrainConfig& config, const Json& model, const Json& side) {
  if (!model.is_string()) return false;
  if (!config.model_given) model.get_to(config.model);
  if (config.image_size == 0 && side.is_number_integer()) side.get_to(config.image_size);
  return true;
}

/// Takes them from the weights to start from, where their file has them.
bool take_from_weights(TrainConfig& config) {
  if (config.pretrained.empty()) return false;
  const SafetensorsReader file =
      read_weights_file(weights_file(config.pretrained, "weights"), "--pretrained");
  const auto value = [&](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? Json() : parse_json_if_valid<Json>(found->second);
  };
  const Json run = value("thinwire"), image = value("image");
  const Json model = run.is_object() ? run.value("/config/model"_json_pointer, Json()) : Json(),
             side = image.is_array() && !image.empty() ? image[0] : Json();
  const bool sized = config.image_size > 0;
  if (!take(config, model, side)) return false;
  if (!config.model_given)
    config.model_reason = fmt::format("no --model given: {} at --image-size {}, as the weights",
                                      config.model, config.image_size);
  else if (!sized && config.image_size > 0)
    config.model_reason = fmt::format("--image-size {}, as the weights", config.image_size);
  return true;
}

/// The options of the run of this name, if it is to go on; else none.
Json run_to_continue(const TrainConfig& config) {
  if (!config.resumes_last() || config.name.empty()) return Json::object();
  const std::string name =
      config.seeds.empty() ? config.name : name_of_seed(config.name, config.seeds.front());
  const auto file = std::filesystem::path(config.output_dir) / name / "config.json";
  Json then = parse_json_if_valid<Json>(read_text_if_any(file, kMostJson));
  return then.is_object() ? then : Json::object();
}

/// Takes the choice of the run of this name, which may have been made for fewer images.
bool take_from_run(TrainConfig& config) {
  const Json then = run_to_continue(config);
  return take(config, then.value("model", Json()), then.value("image_size", Json()));
}

}  // namespace

void choose_model(TrainConfig& config) {
  const DatasetEntry& entry = datasets().find(config.dataset).value;
  // a named network takes no more than the size of the weights
  const bool complete = config.model_given && (config.image_size > 0 || config.pretrained.empty());
  if (!entry.survey || complete) return;
  if (take_from_run(config) || take_from_weights(config) || config.model_given) return;
  const ImageSurvey found = entry.survey({.dir = config.data_dir,
                                          .val_size = static_cast<size_t>(config.val_size),
                                          .val_split = config.val_split});
  const NetworkChoice choice = network_choice(found, config.image_size);
  config.model = choice.model;
  config.image_size = choice.image_size;
  config.model_reason = fmt::format(
      "no --model given: {} at --image-size {}, for {} images whose shorter side is about {} "
      "pixels",
      config.model, config.image_size, found.images, found.side);
}

void choose_rate(TrainConfig& config) {
  constexpr int64_t kBatch = 256;  // Goyal et al. 2017: the rate in proportion to the batch
  config.lr = TrainConfig{}.lr;
  if (const auto& rate = models().find(config.model).value.rate) {
    config.lr = rate->value;
    config.lr_reason = fmt::format("the default of {} ({})", config.model, rate->reason);
  }
  const bool image_files = static_cast<bool>(datasets().find(config.dataset).value.survey);
  if (config.pretrained.empty() && !image_files) return;
  const Json then = run_to_continue(config);
  if (const auto lr = then.find("lr"); lr != then.end() && lr->is_number()) {
    lr->get_to(config.lr);
    config.lr_reason = "as before in this run";
  } else if (config.batch_size < kBatch) {
    config.lr_reason = fmt::format("{:g} for {} images, in proportion to --batch-size {}",
                                   config.lr, kBatch, config.batch_size);
    config.lr *= static_cast<double>(config.batch_size) / kBatch;
  }
}

}  // namespace tw
