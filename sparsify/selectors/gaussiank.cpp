#include "sparsify/selectors/gaussiank.h"

#include <algorithm>

#include "sparsify/selectors/topk.h"
#include "sparsify/sparsifier.h"

namespace tw {

SelectInfo GaussianThreshold::select(Context& ctx, const SelectStep& in, SparseVector& out) {
  const std::span<float> e = in.e;
  const size_t k = std::min(in.k, e.size());
  const Moments u = collect(ctx, in, k);
  if (!u.finite()) return name_nonfinite(ctx, e);

  const double first = first_threshold(u.sum, u.square, e.size(), in.density);
  const double last =
      last_threshold(first, [&](double threshold) { return judge_at(ctx, e, threshold, k); });
  candidates_->widen(ctx, e, bits_above(last));

  // a threshold below zero admits zeros, which are not sent
  candidates_->take(ctx, std::max(1u, bits_above(last)), e, in.base, out);
  return {.threshold = static_cast<float>(std::max(last, 0.0))};
}

Moments GaussianThreshold::collect(Context& ctx, const SelectStep& in, size_t k) {
  min_bits_ = half_bits_ = kNothingCollected;
  if (ctx.device() != Device::cpu) return add_and_moments(ctx, in.g, in.e, blocks_);
  forecast_.make(in.g, in.e, k, in.density);
  min_bits_ = bits_above(forecast_.least());
  Moments u;
  candidates_->collect(ctx, in.g, in.e, min_bits_, {}, &u);
  return u;
}

Judgement GaussianThreshold::judge_at(Context& ctx, std::span<float> e, double threshold,
                                      size_t k) {
  const uint32_t bits = bits_above(threshold);
  const auto judged = [&](uint32_t reached) {
    return judge(static_cast<double>(candidates_->reaching(reached)), static_cast<double>(k));
  };
  if (bits >= min_bits_ || bits == half_bits_) return judged(bits);
  // all that were collected are above this threshold
  if (min_bits_ != kNothingCollected && judged(min_bits_) == Judgement::many)
    return Judgement::many;

  // not foreseen: collects from this threshold, and counts at half of it
  min_bits_ = bits;
  half_bits_ = bits_above(threshold * 0.5);
  candidates_->collect(ctx, {}, e, bits, std::span(&half_bits_, 1));
  return judged(bits);
}

namespace {

// The upper 16 bits of a magnitude: the threshold is a bin edge, and within its bin the lower
// indices are taken until there are k.
constexpr uint32_t kHistogramResolution = ~0u << LogHistogram::kShift;

bool as_published(const Settings& settings) { return settings.text("gaussiank.refine") == "paper"; }

std::unique_ptr<Selector> make_gaussiank(Context& ctx, const Settings& settings,
                                         const SelectorRank&) {
  if (as_published(settings)) return std::make_unique<GaussianThreshold>(ctx);
  return std::make_unique<TopK>(ctx, kHistogramResolution);
}

const std::vector<Setting> kGaussianKSettings = {
    {"refine",
     "paper",
     "paper: mean + quantile * deviation, adjusted at most twice; "
     "histogram: k entries, threshold at a bin of a logarithmic histogram",
     {"paper", "histogram"}}};

const bool gaussiank_selector =
    selectors().add({"gaussiank",
                     "magnitudes above a threshold taken from the distribution of u",
                     {.make = make_gaussiank,
                      .volume =
                          [](const Settings& settings) {
                            return as_published(settings) ? Volume::any : Volume::exactly_k;
                          }},
                     kGaussianKSettings});
const bool gaussiank_sparsifier =
    sparsifiers().add({"gaussiank",
                       "Gaussian threshold, error feedback, sparse allgather",
                       {.selector = "gaussiank", .exchange = "allgather"}});

}  // namespace

}  // namespace tw
