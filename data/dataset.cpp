#include "data/dataset.h"

namespace tw {

Registry<DatasetFactory>& datasets() {
  static Registry<DatasetFactory> registry{"dataset"};
  return registry;
}

}  // namespace tw
