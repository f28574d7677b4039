// The data set fashionmnist: 60,000 training and 10,000 test images of clothes (Xiao, Rasul and
// Vollgraf, "Fashion-MNIST", 2017).
#include "data/mnist/idx.h"

namespace tw {

namespace {

const bool fashion_mnist_registered =
    add_idx_data_set({.name = "fashionmnist",
                      .help = "Fashion-MNIST, 28 x 28 gray images of clothes",
                      .usual = "FashionMNIST/raw",
                      .source = "https://github.com/zalandoresearch/fashion-mnist",
                      .mean = 0.2860f,
                      .deviation = 0.3530f,
                      .class_names = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                      "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"},
                      .fashion = true});

}  // namespace

}  // namespace tw
