#include "sparsify/selectors/gaussiank.h"

#include <algorithm>
#include <cmath>

#include "sparsify/selectors/normal_quantile.h"
#include "sparsify/selectors/topk.h"
#include "sparsify/sparsifier.h"

namespace tw {

SelectInfo GaussianThreshold::select(Context& ctx, const SelectStep& in, SparseVector& out) {
  const std::span<float> e = in.e;
  const double d = static_cast<double>(e.size());
  const size_t k = std::min(in.k, e.size());
  const Moments u = add_and_moments(ctx, in.g, e, blocks_);
  if (!u.finite()) return name_nonfinite(ctx, e);

  const double mean = u.sum / d;
  const double variance = (u.square - u.sum * mean) / std::max(1.0, d - 1);
  const double quantile = std::abs(normal_quantile(in.density / 2));
  // in double: a threshold above the largest float may be halved back into range
  const double first = mean + quantile * std::sqrt(std::max(0.0, variance));

  // One pass keeps the entries above the first threshold and counts those above half of it. These
  // counts determine which threshold is evaluated last.
  const auto few = [&](size_t count) { return 3 * count < 2 * k; };
  const auto many = [&](size_t count) { return 3 * count > 4 * k; };
  const uint32_t half = bits_above(first * 0.5);
  candidates_->collect(ctx, {}, e, bits_above(first), std::span(&half, 1));
  double last = first;
  if (few(candidates_->count())) {
    const size_t at_half = candidates_->reaching(half);
    last *= 0.5;
    if (few(at_half)) last *= 0.5;
    if (many(at_half)) last *= 1.5;
  } else if (many(candidates_->count())) {
    last *= 1.5;
    const size_t count = candidates_->reaching(bits_above(last));
    if (few(count)) last *= 0.5;
    if (many(count)) last *= 1.5;
  }
  candidates_->widen(ctx, e, bits_above(last));

  // a threshold below zero admits zeros, which are not sent
  candidates_->take(ctx, std::max(1u, bits_above(last)), e, in.base, out);
  return {.threshold = static_cast<float>(std::max(last, 0.0))};
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
