#include "apps/train/tables/gradient_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "apps/common/distributions.h"
#include "sparsify/sparsifier.h"

namespace tw {

const char* const GradientStatistics::kHeader =
    "epoch,steps,mean,std,kurtosis,left_topk,left_randk,bound";
const char* const GradientStatistics::kHistogramHeader = "epoch,low,high,count";

namespace {

constexpr uint32_t kBinShift = 20;
constexpr uint32_t kSign = 0x80000000u >> kBinShift;

uint32_t bin_of(float x) { return std::bit_cast<uint32_t>(x) >> kBinShift; }

/// The magnitude at which a bin begins.
float edge(uint32_t bin) { return std::bit_cast<float>((bin & ~kSign) << kBinShift); }

std::unique_ptr<Selector> make(Context& ctx, const std::string& name) {
  return selectors().find(name).value(ctx, default_settings(), {});
}

}  // namespace

GradientStatistics::GradientStatistics(Context& ctx, const std::filesystem::path& folder,
                                       int64_t keep_through, bool with_residual)
    : topk_(make(ctx, kTopk)),
      randk_(make(ctx, kRandk)),
      table_(folder / "distributions.csv", kHeader, keep_through),
      histogram_(folder / "histograms.csv", kHistogramHeader, keep_through) {
  if (with_residual)
    residuals_.emplace(folder / "residual_histograms.csv", kHistogramHeader, keep_through);
}

double GradientStatistics::left_by(Context& ctx, Selector& selector, double density,
                                   const Moments& u) {
  std::ranges::fill(e_, 0.0f);
  out_.count = 0;
  const SelectStep step{.g = u_,
                        .e = e_,
                        .k = entries_to_keep(density, u_.size()),
                        .density = density,
                        .step = sums_->steps};
  density < 1 ? selector.select(ctx, step, out_) : select_all(ctx, step, out_);
  return residual_fraction(ctx, u, e_, blocks_);
}

void GradientStatistics::add(Context& ctx, std::span<const float> g, std::span<const float> e,
                             double density) {
  u_.assign(g.begin(), g.end());
  e_.resize(g.size());
  const Moments u =
      e.empty() ? add_and_moments(ctx, {}, u_, blocks_) : add_and_moments(ctx, e, u_, blocks_);
  if (!u.finite() || u.largest == 0) return;

  for (const float x : u_) {
    const double square = double{x} * double{x};
    sums_->powers[1] += double{x};
    sums_->powers[2] += square;
    sums_->powers[3] += square * double{x};
    sums_->powers[4] += square * square;
    ++sums_->u[bin_of(x)];
  }
  if (residuals_ && std::ranges::any_of(e, [](float x) { return x != 0; }))
    for (const float x : e) ++sums_->residual[bin_of(x)];
  sums_->powers[0] += static_cast<double>(u_.size());
  sums_->topk += left_by(ctx, *topk_, density, u);
  sums_->randk += left_by(ctx, *randk_, density, u);
  const double share = static_cast<double>(entries_to_keep(density, u_.size()));
  sums_->bound += bell_bound(std::min(1.0, share / static_cast<double>(u_.size())));
  ++sums_->steps;
}

Histogram GradientStatistics::write_bins(const Bins& bins, int64_t epoch, CsvFile& table) {
  Histogram histogram;
  const auto put = [&](uint32_t bin, float low, float high) {
    if (bins[bin] == 0) return;
    table.row(fmt::format("{},{:g},{:g},{}", epoch, low, high, bins[bin]));
    histogram.add(double{low}, double{high}, static_cast<double>(bins[bin]));
  };
  for (uint32_t bin = kSign; bin-- > 0;) put(bin | kSign, -edge(bin + 1), -edge(bin));
  for (uint32_t bin = 0; bin < kSign; ++bin) put(bin, edge(bin), edge(bin + 1));
  return histogram;
}

Histogram GradientStatistics::write(int64_t epoch) {
  if (sums_->steps == 0) return {};
  const auto& [n, s1, s2, s3, s4] = sums_->powers;
  const double mean = s1 / n, variance = std::max(0.0, s2 / n - mean * mean);
  const double fourth =
      s4 / n - 4 * mean * s3 / n + 6 * mean * mean * s2 / n - 3 * mean * mean * mean * mean;
  const double steps = static_cast<double>(sums_->steps);
  table_.row(fmt::format("{},{},{:.6g},{:.6g},{:.6g},{:.6f},{:.6f},{:.6f}", epoch, sums_->steps,
                         mean, std::sqrt(variance),
                         variance > 0 ? fourth / (variance * variance) : 0.0, sums_->topk / steps,
                         sums_->randk / steps, sums_->bound / steps));

  if (residuals_) write_bins(sums_->residual, epoch, *residuals_);
  Histogram histogram = write_bins(sums_->u, epoch, histogram_);
  histogram.sum = s1;
  histogram.squares = s2;
  *sums_ = {};
  return histogram;
}

}  // namespace tw
