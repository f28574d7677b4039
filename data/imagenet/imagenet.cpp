// The data sets imagefolder and imagenet: a folder of JPEG files, or the record file made of it.
#include "data/class_names.h"
#include "data/imagenet/image_folder.h"
#include "data/imagenet/record_file.h"
#include "data/wrappers.h"

namespace tw {

namespace {

struct Sources {
  std::shared_ptr<const JpegSource> train, val;
  std::vector<std::string> classes;
  std::string kind;
  std::string left_out;
};

Sources open_sources(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {
    const auto file = std::make_shared<const RecordFile>(path);
    return {record_source(file, true), record_source(file, false), file->classes(),
            "val of the record file", ""};
  }
  const ImageFolders folders = open_image_folders(path);
  return {folders.train, folders.val, folders.train->classes(), "val folder",
          left_out_text(folders.left_out)};
}

DataSplit open_jpegs(const DataConfig& config, size_t expected_classes) {
  check(!config.dir.empty(),
        "[imagefolder] --data-dir is missing: a folder that holds train/<class>/*.JPEG and "
        "val/<class>/*.JPEG, or a record file");
  check(config.val_size == 0,
        "[imagefolder] val-size is {}; expected 0: this data set has validation images of its own",
        config.val_size);
  Sources opened = open_sources(config.dir);
  check(expected_classes == 0 || opened.classes.size() == expected_classes,
        "[imagenet] {} has {} classes; ImageNet has {} (--dataset imagefolder takes any number)",
        config.dir.string(), opened.classes.size(), expected_classes);
  const JpegOptions options{.classes = std::ssize(opened.classes),
                            .image_size = config.image_size > 0 ? config.image_size : 224,
                            .colour_jitter = config.colour_jitter};
  DataSplit split;
  split.train = std::make_shared<JpegDataset>(std::move(opened.train), options);
  split.val = std::make_shared<JpegDataset>(std::move(opened.val), options);
  if (config.skip_bad) {
    split.skipped = std::make_shared<SkipLog>();
    split.train = skip_bad(split.train, split.skipped);
    split.val = skip_bad(split.val, split.skipped);
  }
  split.val_name = opened.kind;
  split.left_out = opened.left_out;
  split.class_names = as_utf8(std::move(opened.classes));
  split.mean = {0.485f, 0.456f, 0.406f};
  split.deviation = {0.229f, 0.224f, 0.225f};
  return split;
}

DataSplit image_folder(const DataConfig& config) { return open_jpegs(config, 0); }
DataSplit imagenet(const DataConfig& config) { return open_jpegs(config, 1000); }

/// A folder with train/ or val/, or a file, which may be a record file.
bool holds_images(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) ||
         std::filesystem::is_directory(path / "train", ignored) ||
         std::filesystem::is_directory(path / "val", ignored);
}

const bool imagenet_registered =
    datasets().add({kImageFolder,
                    "JPEG files in train/<class> and val/<class>",
                    {.open = image_folder, .recognises = holds_images}}) &&
    datasets().add({kImageNet, "imagefolder with the 1,000 classes of ImageNet", {imagenet}});

}  // namespace

const char* const kImageFolder = "imagefolder";
const char* const kImageNet = "imagenet";

}  // namespace tw
