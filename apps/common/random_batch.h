// A batch of random images, for measurements that need no data set.
#pragma once

#include "models/model.h"

namespace tw {

/// Fills the inputs of an allocated model, on ctx's device: random pixels from `seed`, labels 0, 1,
/// ... modulo the number of classes.
void fill_random_batch(Context& ctx, const Model& model, uint64_t seed);

}  // namespace tw
