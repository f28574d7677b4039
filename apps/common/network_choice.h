// The network and the size of images that fit a data set, where a user names none.
#pragma once

#include <string>

#include "data/dataset.h"
#include "models/registry.h"

namespace tw {

struct NetworkChoice {
  const char* model;
  int64_t image_size;
};
/// For image files; their side is `image_size` where that is given, not 0.
NetworkChoice network_choice(const ImageSurvey& images, int64_t image_size);

struct DataNetwork {
  std::string model;
  ModelSpec spec;
};
/// What `train --data-dir DIR` trains, with this model and this size of image files if they are not
/// empty or 0. Lists the files of the folder. UserError as by dataset_of() and the data set.
DataNetwork network_for_data(const std::string& dir, const std::string& model = "",
                             int64_t image_size = 0);

}  // namespace tw
