// The default learning rates of models that do not train at 0.1.
#pragma once

#include "engine/core/registry.h"

namespace tw {

/// Default learning rates by model, for batch 32 and momentum 0.9. Models with batch norm need no
/// entry: they train at 0.1.
Registry<double>& default_learning_rates();

}  // namespace tw
