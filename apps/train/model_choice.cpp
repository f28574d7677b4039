// The network and the image size of a run on image files that names no network, and the learning
// rate of that and of pretrained weights.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/common/checkpoint_folder.h"
#include "apps/train/config.h"
#include "data/dataset.h"
#include "engine/io/file.h"
#include "engine/io/json.h"

namespace tw {

namespace {

/// For images whose shorter side is below `side` pixels, and fewer than `images` of them.
struct Choice {
  int64_t side;
  size_t images;
  const char* model;
  int64_t image_size;
};

/// The first one that fits. An enlarged image costs more and shows no more, so the images are
/// hardly enlarged. ResNet-20 keeps a quarter of the side in its last layer; the ResNets for
/// ImageNet keep a thirty-second, too little of a small image. ResNet-50 costs 2.3 times as much as
/// ResNet-18 for an image, and needs many images to be better.
const Choice& choice_for(int64_t side, size_t images) {
  constexpr int64_t kAnySide = INT64_MAX;
  constexpr size_t kAny = SIZE_MAX, kMany = 100'000;
  static const Choice all[] = {{48, kAny, kResnet20, 32},
                               {96, kAny, kResnet20, 64},
                               {192, kAny, kResnet18, 128},
                               {kAnySide, kMany, kResnet18, 224},
                               {kAnySide, kAny, kResnet50, 224}};
  return *std::ranges::find_if(
      all, [&](const Choice& one) { return side < one.side && images < one.images; });
}

/// Takes the network and the size of images of the weights to start from, where their file has
/// them.
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
  if (!model.is_string()) return false;
  model.get_to(config.model);
  if (config.image_size == 0 && side.is_number_integer()) side.get_to(config.image_size);
  config.model_reason = fmt::format("no --model given: {} at --image-size {}, as the weights",
                                    config.model, config.image_size);
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
  const auto model = then.find("model");
  if (model == then.end() || !model->is_string()) return false;
  model->get_to(config.model);
  const auto size = then.find("image_size");
  if (config.image_size == 0 && size != then.end() && size->is_number_integer())
    size->get_to(config.image_size);
  return true;
}

}  // namespace

void choose_model(TrainConfig& config) {
  const DatasetEntry& entry = datasets().find(config.dataset).value;
  if (!entry.survey || take_from_run(config) || take_from_weights(config)) return;
  const ImageSurvey found = entry.survey({.dir = config.data_dir,
                                          .val_size = static_cast<size_t>(config.val_size),
                                          .val_split = config.val_split});
  const bool sized = config.image_size > 0;
  const Choice& choice =
      choice_for(sized ? std::min(found.side, config.image_size) : found.side, found.images);
  config.model = choice.model;
  if (!sized) config.image_size = choice.image_size;
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
  const bool chosen = !config.model_given && datasets().find(config.dataset).value.survey;
  if (!chosen && config.pretrained.empty()) return;
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
