// Momentum before the selection (Lin et al., Deep Gradient Compression, ICLR 2018, section 3): what
// is accumulated, selected from and left behind is velocity, not gradient.
#pragma once

#include <span>

#include "engine/core/context.h"

namespace tw {

/// q = m q + g, g = q;  with Nesterov  q = m (q + g), g = q + g.  What g becomes is then added to
/// what stayed behind, as a gradient would be.
void correct_momentum(Context& ctx, float momentum, bool nesterov, std::span<float> g,
                      std::span<float> q);

/// Local clipping: scales g so that its Euclidean norm is at most `limit`. A NaN or infinity stays.
void clip_norm(Context& ctx, double limit, std::span<float> g);

extern DispatchTable<void(Context&, float, bool, std::span<float>, std::span<float>)>
    correct_momentum_dispatch;
extern DispatchTable<void(Context&, double, std::span<float>)> clip_norm_dispatch;

}  // namespace tw
