// The data set fashionmnist: 60,000 training and 10,000 test images of clothes (Xiao, Rasul and
// Vollgraf, "Fashion-MNIST", 2017).
#include "data/mnist/idx.h"

namespace tw {

namespace {

constexpr const char* kFashionMnist = "fashionmnist";
constexpr const char* kFashionMnistFolder = "FashionMNIST/raw";

DataSplit fashion_mnist(const DataConfig& config) {
  return read_idx_files({.name = kFashionMnist,
                         .usual = kFashionMnistFolder,
                         .source = "https://github.com/zalandoresearch/fashion-mnist",
                         .mean = 0.2860f,
                         .deviation = 0.3530f,
                         .class_names = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                         "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"}},
                        config);
}

bool holds_fashion_mnist(const std::filesystem::path& dir) {
  return holds_idx_files(dir, kFashionMnistFolder, true);
}

const bool fashion_mnist_registered =
    datasets().add({kFashionMnist,
                    "Fashion-MNIST, 28 x 28 gray images of clothes",
                    {.open = fashion_mnist, .recognises = holds_fashion_mnist}});

}  // namespace

}  // namespace tw
