#include "models/default_lr.h"

namespace tw {

Registry<double>& default_learning_rates() {
  static Registry<double> registry("learning rate of model");
  return registry;
}

}  // namespace tw
