#include "sparsify/momentum_correction.h"

#include <cmath>
#include <vector>

#include "engine/core/parallel.h"
#include "engine/ops/vector.h"
#include "sparsify/exchange.h"

#define TW_KERNELS "sparsify/momentum_correction.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::TW_CPU {

inline void correct(float momentum, bool nesterov, float* g, float* q, size_t n) {
  if (nesterov)
    for (size_t i = 0; i < n; ++i) {
      q[i] = momentum * (q[i] + g[i]);
      g[i] += q[i];
    }
  else
    for (size_t i = 0; i < n; ++i) g[i] = q[i] = momentum * q[i] + g[i];
}

}  // namespace tw::TW_CPU
#else
namespace tw {

void correct_momentum(Context& ctx, float momentum, bool nesterov,
                      std::span<const MomentumSlice> slices) {
  correct_momentum_dispatch(ctx.device(), ctx, momentum, nesterov, slices);
}

void clip_norm(Context& ctx, double limit, std::span<float> g, std::vector<Moments>& blocks) {
  const double norm = std::sqrt(add_and_moments(ctx, {}, g, blocks).square);
  if (norm > limit && std::isfinite(norm)) ops::scale(ctx, g, static_cast<float>(limit / norm));
}

bool clips_whole_gradient(const Settings& settings) {
  return settings.number("momentum_correction.clip") > 0 &&
         settings.text("momentum_correction.clip_by") == "gradient";
}

MomentumCorrection momentum_correction(const Settings& settings, double momentum, int ranks) {
  const bool whole = clips_whole_gradient(settings);
  return {.masking = momentum != 0 && settings.flag("momentum_correction.masking"),
          .clip = settings.number("momentum_correction.clip") * (whole ? std::sqrt(ranks) : 1),
          .clips_whole = whole};
}

namespace {

constexpr size_t kGrain = size_t{1} << 15;

void correct_cpu(Context& ctx, float momentum, bool nesterov,
                 std::span<const MomentumSlice> slices) {
  for (const auto& [g, q] : slices)
    parallel_for(ctx, g.size(), kGrain, [&, g = g, q = q](size_t begin, size_t end) {
      TW_KERNEL(correct, momentum, nesterov, g.data() + begin, q.data() + begin, end - begin);
    });
}

const bool momentum_correction_registered = correct_momentum_dispatch.add(Device::cpu, correct_cpu);
const bool momentum_correction_settings = setting_groups().add(
    {"momentum_correction",
     "momentum before the selection, for any selector",
     {},
     {{.key = "masking",
       .value = "true",
       .help = "factor masking: zeroes the momentum of sent entries"},
      {.key = "clip",
       .value = "0.0",
       .help = "limit of the norm of the gradient of a rank; 0: none",
       .least = 0},
      {.key = "clip_by",
       .value = "slice",
       .help = "each tensor (or other slice that is selected from) to clip, as the code of DGC's "
               "authors, or the whole gradient to sqrt(P) clip, as their paper",
       .choices = {"slice", "gradient"}}}});

}  // namespace

}  // namespace tw
#endif
