// Learning rates for models that do not train at the usual 0.1.
#pragma once

#include "engine/core/registry.h"

namespace tw {

/// Learning rates to start from, at batch 32 and momentum 0.9, by model. Models with batch norm
/// need no entry: they train at 0.1.
Registry<double>& suggested_learning_rates();

}  // namespace tw
