#include "apps/common/network_choice.h"

#include <algorithm>

#include "data/dataset.h"

namespace tw {

/// The first one that fits. An enlarged image costs more and shows no more, so the images are
/// hardly enlarged. ResNet-20 keeps a quarter of the side in its last layer; the ResNets for
/// ImageNet keep a thirty-second, too little of a small image. ResNet-50 costs 2.3 times as much as
/// ResNet-18 for an image, and needs many images to be better.
const NetworkChoice& network_choice(int64_t side, size_t images) {
  constexpr int64_t kAnySide = INT64_MAX;
  constexpr size_t kAny = SIZE_MAX, kMany = 100'000;
  static const NetworkChoice all[] = {{48, kAny, kResnet20, 32},
                                      {96, kAny, kResnet20, 64},
                                      {192, kAny, kResnet18, 128},
                                      {kAnySide, kMany, kResnet18, 224},
                                      {kAnySide, kAny, kResnet50, 224}};
  return *std::ranges::find_if(
      all, [&](const NetworkChoice& one) { return side < one.side && images < one.images; });
}

DataNetwork network_for_data(const std::string& dir, const std::string& model) {
  const DatasetEntry& entry = datasets().find(dataset_of(dir)).value;
  DataNetwork found{model.empty() ? kResnet20 : model, {}};
  DataConfig data{.dir = dir};
  if (entry.survey && model.empty()) {
    const ImageSurvey images = entry.survey(data);
    const NetworkChoice& choice = network_choice(images.side, images.images);
    found.model = choice.model;
    data.image_size = choice.image_size;
  }
  const DataSplit split = entry(data);
  found.spec = {.image = split.train->image, .classes = split.train->classes};
  return found;
}

}  // namespace tw
