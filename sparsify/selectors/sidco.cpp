#include "sparsify/selectors/sidco.h"

#include <algorithm>
#include <cmath>

#include "sparsify/sparsifier.h"

namespace tw {

Sidco::Sidco(Context& ctx, const SidcoOptions& options, size_t slices)
    : options_(options), slices_(slices), sent_(slices), candidates_(Candidates::create(ctx)) {}

SelectInfo Sidco::select(Context& ctx, const SelectStep& in, SparseVector& out) {
  Stages& slice = slices_.at(in.slice);
  const uint32_t stages = options_.stages == 0 ? slice.stages : options_.stages;
  Moments u;
  candidates_->collect_largest(ctx, in.g, in.e, to_collect(in, stages), &u);
  if (!u.finite()) return name_nonfinite(ctx, in.e);

  const size_t k = std::min(in.k, in.e.size()), first = out.count;
  const double mean = u.magnitude / static_cast<double>(in.e.size());
  const auto threshold = fit(ctx, in, mean, stages);
  SelectInfo info;
  if (threshold) {
    const uint32_t bits = candidate_bits(bits_above(*threshold));
    candidates_->widen(ctx, in.e, bits);
    candidates_->take(ctx, bits, in.e, in.base, out);
    info.threshold = std::bit_cast<float>(bits);
  } else {
    info = candidates_->take_largest(ctx, k, ~0u, in.e, in.base, out);
  }
  sent_[in.slice] = out.count - first;
  adapt(slice, static_cast<double>(sent_[in.slice]) / static_cast<double>(k), in.density);
  return info;
}

size_t Sidco::to_collect(const SelectStep& in, uint32_t stages) const {
  constexpr double kMargin = 1.5, kFew = 1.0 / 32;  // of all entries
  double share = stages == 1 ? in.density : options_.first_ratio;
  const double ratio = std::pow(in.density / options_.first_ratio, 1 / (stages - 1.0));
  for (uint32_t stage = 1; stage < stages && kMargin * share > kFew; ++stage) share *= ratio;
  const auto described = static_cast<size_t>(kMargin * share * static_cast<double>(in.e.size()));
  // Without it, an excess over 2 k would take a second pass. Several fits sum what is collected, so
  // that it may not depend on what a run that resumes does not know.
  const size_t last = stages == 1 ? sent_[in.slice] : 0;
  return std::min(in.e.size(), std::max({2 * in.k, described, last + last / 8}));
}

std::optional<double> Sidco::fit(Context& ctx, const SelectStep& in, double mean, uint32_t stages) {
  const double first_ratio = options_.first_ratio;
  const bool once = stages == 1 || in.density >= first_ratio;
  double threshold = -mean * std::log(once ? in.density : first_ratio), highest = 0;
  const double log_ratio = std::log(in.density / first_ratio) / (stages - 1.0);
  for (uint32_t stage = 1; stage < stages; ++stage) {
    highest = std::max(highest, threshold);
    const Tail tail = candidates_->tail(ctx, in.e, candidate_bits(bits_above(highest)));
    if (tail.count == 0) return std::nullopt;
    const double least = double{tail.least};
    threshold = least - (tail.sum / tail.count - least) * log_ratio;
  }
  return threshold;
}

void Sidco::adapt(Stages& of, double sent_ratio, double density) const {
  of.sent_ratio += sent_ratio;
  if (++of.steps < options_.adapt_every) return;
  const double mean = of.sent_ratio / of.steps;
  const double most = std::max(1.0, std::ceil(-std::log2(density)));
  double stages = of.stages;
  if (mean > 1 + options_.tolerance_up) --stages;
  if (mean < 1 - options_.tolerance_down) ++stages;
  of = {.stages = static_cast<uint32_t>(std::clamp(stages, 1.0, most))};
}

std::span<std::byte> Sidco::state() { return std::as_writable_bytes(std::span(slices_)); }

namespace {

std::unique_ptr<Selector> make_sidco(Context& ctx, const Settings& settings,
                                     const SelectorRank& rank) {
  const SidcoOptions options{
      .stages = static_cast<uint32_t>(settings.integer("sidco.stages")),
      .first_ratio = settings.number("sidco.first_ratio"),
      .adapt_every = static_cast<uint32_t>(settings.integer("sidco.adapt_every")),
      .tolerance_up = settings.number("sidco.tolerance_up"),
      .tolerance_down = settings.number("sidco.tolerance_down")};
  return std::make_unique<Sidco>(ctx, options, rank.slices);
}

const std::vector<Setting> kSidcoSettings = {
    {.key = "stages",
     .value = "0",
     .help = "fits in a step; 0: adapted to the entries that were sent",
     .least = 0,
     .most = 30},
    {.key = "first_ratio",
     .value = "0.25",
     .help = "share of the entries that the first of several fits keeps",
     .least = 0.05,
     .most = 0.5},
    {.key = "adapt_every",
     .value = "5",
     .help = "steps between two changes of the number of fits",
     .least = 1,
     .most = 1000},
    {.key = "tolerance_up",
     .value = "0.2",
     .help = "excess of sent / k that changes the number of fits",
     .least = 0},
    {.key = "tolerance_down",
     .value = "0.2",
     .help = "shortfall of sent / k that changes the number of fits",
     .least = 0}};

const bool sidco_selector =
    selectors().add({"sidco",
                     "magnitudes above a threshold from fitted exponential distributions",
                     {.make = make_sidco, .volume = Volume::any},
                     kSidcoSettings});
const bool sidco_sparsifier =
    sparsifiers().add({"sidco",
                       "SIDCo's fitted threshold, error feedback, sparse allgather",
                       {.selector = "sidco", .exchange = "allgather"}});

}  // namespace

}  // namespace tw
