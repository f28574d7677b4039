// The data set mnist: 60,000 training and 10,000 test images of handwritten digits (LeCun et al.,
// "Gradient-Based Learning Applied to Document Recognition", Proc. IEEE 1998).
#include "data/mnist/idx.h"

namespace tw {

namespace {

const bool mnist_registered =
    add_idx_data_set({.name = "mnist",
                      .help = "MNIST, 28 x 28 gray images of handwritten digits",
                      .usual = "MNIST/raw",
                      .source = "https://ossci-datasets.s3.amazonaws.com/mnist",
                      .mean = 0.1307f,
                      .deviation = 0.3081f,
                      .class_names = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}});

}  // namespace

}  // namespace tw
