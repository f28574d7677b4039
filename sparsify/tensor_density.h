// Density by tensor, in layer scope: `layer1.*=0.01,fc=1`. A pattern of the shell (fnmatch) stands
// for the tensors with such a name, or with a name that goes on with a dot. Of several that match a
// tensor the last counts. Other tensors have the density of the step.
#pragma once

#include <string>
#include <vector>

#include "sparsify/buckets.h"

namespace tw {

/// Sets the densities of the segments. UserError on text of another form, on densities that are not
/// in (0, 1], and on patterns that count for no tensor.
void set_densities(std::vector<Bucket>& buckets, const ParameterArena& arena,
                   const std::string& text);

}  // namespace tw
