// Momentum correction: applies momentum before the selection, so that the residual accumulates
// velocity instead of gradients (Lin et al., Deep Gradient Compression, ICLR 2018, arXiv
// 1712.01887). It works with any selector.
//
// Settings, in the order of the step:
//   momentum_correction.clip = c > 0: a limit of the norm of the gradient of each of P ranks, which
//     is a mean over the images of the rank. momentum_correction.clip_by says what is clipped, and
//     to which norm:
//       slice     each slice that is selected from, to c: in layer scope one tensor, as in the
//                 authors' code; in model scope the whole gradient. Tensors that are exchanged
//                 densely are clipped after the mean over the ranks, to c, too.
//       gradient  all tensors together, to sqrt(P) c. In the paper the ranks' gradients are divided
//                 by P before they are clipped to c / sqrt(P). Excludes overlap, which sends the
//                 first tensors before the last gradients are known.
//   momentum_correction.masking: the momentum becomes 0 at the selected entries that the
//     sum contains.
#pragma once

#include <span>
#include <vector>

#include "engine/core/context.h"
#include "engine/core/settings.h"
#include "sparsify/kernels/moments.h"

namespace tw {

/// A gradient and its momentum, of equal length.
struct MomentumSlice {
  std::span<float> g, q;
};
/// q = m q + g, g = q;  with Nesterov  q = m (q + g), g = q + g.  The new g replaces the gradient
/// in the sum with the residual.
void correct_momentum(Context& ctx, float momentum, bool nesterov,
                      std::span<const MomentumSlice> slices);

/// Scales g so that its Euclidean norm is at most `limit`. Does nothing if the norm is not finite.
/// `blocks` is working memory. Waits for the device: not for a captured step.
void clip_norm(Context& ctx, double limit, std::span<float> g, std::vector<Moments>& blocks);

/// Whether the settings ask for one norm of the whole gradient.
bool clips_whole_gradient(const Settings& settings);

/// The settings as a step uses them.
struct MomentumCorrection {
  bool masking = false;      ///< factor masking; never without momentum
  double clip = 0;           ///< limit of the norm of a slice or gradient of a rank; 0: none
  bool clips_whole = false;  ///< the norm is that of the whole gradient
  bool clips_slices() const { return clip > 0 && !clips_whole; }
};
MomentumCorrection momentum_correction(const Settings& settings, double momentum, int ranks);

inline constinit DispatchTable<decltype(correct_momentum)> correct_momentum_dispatch{
    "correct_momentum"};

}  // namespace tw
