// The data sets imagefolder and imagenet: a folder of image files, or the record file made of it.
#include <algorithm>

#include "data/class_names.h"
#include "data/imagenet/image_folder.h"
#include "data/imagenet/record_file.h"
#include "data/wrappers.h"
#include "engine/io/file.h"

namespace tw {

namespace {

struct Sources {
  /// train is null: it is not read; val is null: images of train are held out.
  std::shared_ptr<const ImageSource> train, val;
  std::vector<std::string> classes;
  std::string kind;
  std::string left_out;
  double split = 0;  ///< the share of each class to hold out; 0: config.val_size images
};

constexpr double kSplit = 0.1;  // of class folders alone

Sources open_sources(const DataConfig& config) {
  const std::filesystem::path& path = config.dir;
  check(!config.dir.empty(),
        "[imagefolder] --data-dir is missing: a folder that holds train/<class> and "
        "val/<class> with images, or a record file");
  const size_t val_size = config.val_size;
  std::error_code ignored;
  check_there("data", path);
  const bool file = std::filesystem::is_regular_file(path, ignored);
  const auto records = file ? std::make_shared<const RecordFile>(path) : nullptr;
  const bool train = std::filesystem::is_directory(path / "train", ignored),
             val = file ? records->val_size() > 0 : std::filesystem::exists(path / "val", ignored);
  const bool classes = !train && !val && (file || holds_class_folders(path));
  const double split = config.val_split.value_or(classes && val_size == 0 ? kSplit : 0);
  check(val_size == 0 || !val,
        "[imagefolder] val-size is {}; expected 0: {} has validation images of its own", val_size,
        path.string());
  check(split == 0 || !val,
        "[imagefolder] val-split is {}; expected 0: {} has validation images of its own", split,
        path.string());
  if (config.whole && file && !val)
    return {nullptr, record_source(records, true), records->classes(), "all images", ""};
  if (config.whole && !file && (val || !train)) {
    const auto folder = std::make_shared<const ImageFolder>(val ? path / "val" : path);
    return {nullptr, folder, folder->classes(), "all images", left_out_text(folder->left_out())};
  }
  if (file && val)
    return {record_source(records, true), record_source(records, false), records->classes(),
            "val of the record file", ""};
  const bool holds_out = val_size > 0 || split > 0;
  check(val || holds_out || !(train || classes),
        "[imagefolder] there is no {}; --val-split 0.1 holds out a tenth of each class",
        file ? "val in " + path.string() : "folder " + (path / "val").string());
  if ((train || classes) && holds_out) {
    const auto folder =
        file ? nullptr : std::make_shared<const ImageFolder>(train ? path / "train" : path);
    const std::shared_ptr<const ImageSource> all = file ? record_source(records, true) : folder;
    check(val_size < all->size(),
          "[imagefolder] val-size is {}, expected less than the {} training images", val_size,
          all->size());
    return {all,
            nullptr,
            file ? records->classes() : folder->classes(),
            split > 0 ? fmt::format("{} of each class held out", split)
                      : fmt::format("{} held-out training images", val_size),
            file ? "" : left_out_text(folder->left_out()),
            split};
  }
  const ImageFolders folders = open_image_folders(path);
  return {folders.train, folders.val, folders.train->classes(), "val folder",
          left_out_text(folders.left_out)};
}

DataSplit open_images(const DataConfig& config, size_t expected_classes) {
  Sources opened = open_sources(config);
  check(expected_classes == 0 || opened.classes.size() == expected_classes,
        "[imagenet] {} has {} classes; ImageNet has {} (--dataset imagefolder takes any number)",
        config.dir.string(), opened.classes.size(), expected_classes);
  const ImageOptions options{.classes = std::ssize(opened.classes),
                             .image_size = config.image_size > 0 ? config.image_size : 224,
                             .colour_jitter = config.colour_jitter,
                             .exif_orientation = config.exif_orientation,
                             .crops_border = config.crops_border};
  DataSplit split;
  if (opened.train) split.train = std::make_shared<ImageDataset>(opened.train, options);
  if (opened.val) {
    split.val = std::make_shared<ImageDataset>(std::move(opened.val), options);
  } else if (opened.split > 0) {
    std::vector<int32_t> labels;
    for (size_t i = 0; i < opened.train->size(); ++i) labels.push_back(opened.train->label(i));
    split.val = share_of_classes(split.train, labels, opened.split, true);
    split.train = share_of_classes(split.train, labels, opened.split, false);
    check(split.val->size() > 0, "[imagefolder] {}: no class has two images, one to hold out",
          config.dir.string());
  } else {  // the images are sorted by class
    split.val = every_nth(split.train, config.val_size, true);
    split.train = every_nth(split.train, config.val_size, false);
  }
  if (config.skip_bad) {
    split.skipped = std::make_shared<SkipLog>();
    if (split.train) split.train = skip_bad(split.train, split.skipped);
    split.val = skip_bad(split.val, split.skipped);
  }
  split.val_name = opened.kind;
  split.left_out = opened.left_out;
  split.class_names = as_utf8(std::move(opened.classes));
  split.mean = kImageMean;
  split.deviation = kImageDeviation;
  return split;
}

DataSplit image_folder(const DataConfig& config) { return open_images(config, 0); }
DataSplit imagenet(const DataConfig& config) { return open_images(config, 1000); }

ImageSurvey survey(const DataConfig& config) {
  const Sources sources = open_sources(config);
  const auto& images = sources.train;
  constexpr size_t kSample = 101;
  const size_t count = std::min(kSample, images->size());
  std::vector<int64_t> sides;
  std::vector<std::byte> buffer;
  ImageDecoder decoder;
  for (size_t i = 0; i < count; ++i) {
    try {
      const ImageSize size = decoder.open(images->read(i * images->size() / count, buffer));
      sides.push_back(std::min(size.width, size.height));
    } catch (const ImageError&) {  // --bad-images says what a run does there
    }
  }
  check(!sides.empty(), "[imagefolder] {}: none of {} images can be read", config.dir.string(),
        count);
  const auto middle = sides.begin() + std::ssize(sides) / 2;
  std::ranges::nth_element(sides, middle);
  return {images->size(), *middle, std::ssize(sources.classes)};
}

/// A folder with train/ or val/, or with class folders; or a file, which may be a record file.
bool holds_images(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) ||
         std::filesystem::is_directory(path / "train", ignored) ||
         std::filesystem::is_directory(path / "val", ignored) || holds_class_folders(path);
}

const bool imagenet_registered =
    datasets().add({kImageFolder,
                    "JPEG, PNG and WebP files in train/<class> and val/<class>, or in <class>",
                    {.open = image_folder,
                     .image_files = true,
                     .recognises = holds_images,
                     .survey = survey}}) &&
    datasets().add({kImageNet,
                    "imagefolder with the 1,000 classes of ImageNet",
                    {.open = imagenet, .image_files = true, .survey = survey}});

}  // namespace

const char* const kImageFolder = "imagefolder";
const char* const kImageNet = "imagenet";

}  // namespace tw
