// The network and the size of images that fit a data set, where a user names none.
#pragma once

#include <string>

#include "models/registry.h"

namespace tw {

/// For images whose shorter side is below `side` pixels, and fewer than `images` of them.
struct NetworkChoice {
  int64_t side;
  size_t images;
  const char* model;
  int64_t image_size;
};
const NetworkChoice& network_choice(int64_t side, size_t images);

struct DataNetwork {
  std::string model;
  ModelSpec spec;
};
/// What `train --data-dir DIR` trains, with this model if it is not empty. Lists the files of the
/// folder. UserError as by dataset_of() and the data set.
DataNetwork network_for_data(const std::string& dir, const std::string& model = "");

}  // namespace tw
