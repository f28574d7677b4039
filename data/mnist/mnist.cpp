// The data set mnist: 60,000 training and 10,000 test images of handwritten digits (LeCun et al.,
// "Gradient-Based Learning Applied to Document Recognition", Proc. IEEE 1998).
#include "data/mnist/idx.h"

namespace tw {

namespace {

constexpr const char* kMnist = "mnist";
constexpr const char* kMnistFolder = "MNIST/raw";

DataSplit mnist(const DataConfig& config) {
  return read_idx_files({.name = kMnist,
                         .usual = kMnistFolder,
                         .source = "https://ossci-datasets.s3.amazonaws.com/mnist",
                         .mean = 0.1307f,
                         .deviation = 0.3081f,
                         .class_names = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}},
                        config);
}

bool holds_mnist(const std::filesystem::path& dir) {
  return holds_idx_files(dir, kMnistFolder, false);
}

const bool mnist_registered = datasets().add({kMnist,
                                              "MNIST, 28 x 28 gray images of handwritten digits",
                                              {.open = mnist, .recognises = holds_mnist}});

}  // namespace

}  // namespace tw
