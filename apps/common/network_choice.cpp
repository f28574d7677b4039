#include "apps/common/network_choice.h"

#include <algorithm>

namespace tw {

namespace {

/// For images whose shorter side is below `side` pixels, and fewer than `images` of them.
struct ChoiceRow {
  int64_t side;
  size_t images;
  NetworkChoice choice;
};

}  // namespace

/// The first row that fits. An enlarged image costs more and shows no more, so the images are
/// hardly enlarged. ResNet-20 keeps a quarter of the side in its last layer; the ResNets for
/// ImageNet keep a thirty-second, too little of a small image. ResNet-50 costs 2.3 times as much as
/// ResNet-18 for an image, and needs many images to be better.
NetworkChoice network_choice(const ImageSurvey& images, int64_t image_size) {
  constexpr int64_t kAnySide = INT64_MAX;
  constexpr size_t kAny = SIZE_MAX, kMany = 100'000;
  static const ChoiceRow all[] = {{48, kAny, {kResnet20, 32}},
                                  {96, kAny, {kResnet20, 64}},
                                  {192, kAny, {kResnet18, 128}},
                                  {kAnySide, kMany, {kResnet18, 224}},
                                  {kAnySide, kAny, {kResnet50, 224}}};
  const int64_t side = image_size > 0 ? std::min(images.side, image_size) : images.side;
  const auto fits = [&](const ChoiceRow& r) { return side < r.side && images.images < r.images; };
  NetworkChoice choice = std::ranges::find_if(all, fits)->choice;
  if (image_size > 0) choice.image_size = image_size;
  return choice;
}

DataNetwork network_for_data(const std::string& dir, const std::string& model, int64_t image_size) {
  const DatasetEntry& entry = datasets().find(dataset_of(dir)).value;
  if (entry.survey && model.empty()) {
    const ImageSurvey images = entry.survey({.dir = dir});
    const auto [chosen, size] = network_choice(images, image_size);
    return {chosen, {.image = {size, size, 3}, .classes = images.classes}};
  }
  const DataSplit split = entry({.dir = dir, .image_size = entry.survey ? image_size : 0});
  return {model.empty() ? kResnet20 : model,
          {.image = split.train->image, .classes = split.train->classes}};
}

}  // namespace tw
