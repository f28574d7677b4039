// The data set cifar100: 50,000 training and 10,000 test images of 100 classes in 20 groups, of
// which the classes are the labels (Krizhevsky, "Learning Multiple Layers of Features from Tiny
// Images", 2009).
#include "data/cifar/cifar_binary.h"

namespace tw {

namespace {

constexpr const char* kCifar100 = "cifar100";
constexpr const char* kFolder100 = "cifar-100-binary";

/// `dir` is the folder of the files, or the parent of cifar-100-binary.
std::filesystem::path files100_in(const std::filesystem::path& dir) {
  return data_folder_with("train.bin", dir, kFolder100);
}

DataSplit cifar100(const DataConfig& config) {
  CifarFiles files{.name = kCifar100,
                   .dir = files100_in(config.dir),
                   .train_records = 50'000,
                   .test_records = 10'000,
                   .train_names = {"train.bin"},
                   .test_name = "test.bin",
                   .label_bytes = 2,  // the group, then the class
                   .classes = 100};
  files.remedy = fmt::format(
      "unpack cifar-100-binary.tar.gz (https://www.cs.toronto.edu/~kriz/cifar.html) in {}",
      data_folder(config.dir, kFolder100).parent_path().string());
  DataSplit split = read_cifar_files(files, config.val_size);
  split.mean = {0.507f, 0.487f, 0.441f};
  split.deviation = {0.267f, 0.256f, 0.276f};
  split.class_names = class_names_beside(
      files, "fine_label_names.txt",
      {"apple",       "aquarium_fish", "baby",      "bear",       "beaver",       "bed",
       "bee",         "beetle",        "bicycle",   "bottle",     "bowl",         "boy",
       "bridge",      "bus",           "butterfly", "camel",      "can",          "castle",
       "caterpillar", "cattle",        "chair",     "chimpanzee", "clock",        "cloud",
       "cockroach",   "couch",         "crab",      "crocodile",  "cup",          "dinosaur",
       "dolphin",     "elephant",      "flatfish",  "forest",     "fox",          "girl",
       "hamster",     "house",         "kangaroo",  "keyboard",   "lamp",         "lawn_mower",
       "leopard",     "lion",          "lizard",    "lobster",    "man",          "maple_tree",
       "motorcycle",  "mountain",      "mouse",     "mushroom",   "oak_tree",     "orange",
       "orchid",      "otter",         "palm_tree", "pear",       "pickup_truck", "pine_tree",
       "plain",       "plate",         "poppy",     "porcupine",  "possum",       "rabbit",
       "raccoon",     "ray",           "road",      "rocket",     "rose",         "sea",
       "seal",        "shark",         "shrew",     "skunk",      "skyscraper",   "snail",
       "snake",       "spider",        "squirrel",  "streetcar",  "sunflower",    "sweet_pepper",
       "table",       "tank",          "telephone", "television", "tiger",        "tractor",
       "train",       "trout",         "tulip",     "turtle",     "wardrobe",     "whale",
       "willow_tree", "wolf",          "woman",     "worm"});
  return split;
}

bool holds_cifar100(const std::filesystem::path& dir) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(files100_in(dir) / "train.bin", ignored);
}

const bool cifar100_registered =
    datasets().add({kCifar100,
                    "CIFAR-100, binary version, 100 classes of 32 x 32 images",
                    {.open = cifar100, .recognises = holds_cifar100}});

}  // namespace

}  // namespace tw
