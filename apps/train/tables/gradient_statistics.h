// GradientStatistics: the distribution of the entries of u = g + e during training, and what Top-k
// and Rand-k leave of u beside bell_bound of distributions.h. With momentum before the selection, e
// accumulates velocity, but g is the gradient of the step without momentum.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/io/csv.h"
#include "engine/io/event_file.h"
#include "sparsify/kernels/moments.h"
#include "sparsify/selector.h"

namespace tw {

class GradientStatistics {
 public:
  /// Creates distributions.csv (a row per epoch) and histograms.csv (a row per non-empty bin of an
  /// epoch) of u in `folder`, or continues them after epoch `keep_through`. `with_residual`: also
  /// residual_histograms.csv, of e.
  GradientStatistics(Context& ctx, const std::filesystem::path& folder, int64_t keep_through,
                     bool with_residual);

  /// Adds u = g + e of one step, before the selection; empty e: u = g. Changes neither. Skips a u
  /// that is zero or not finite, and an e that is zero, as that of the first step.
  void add(Context& ctx, std::span<const float> g, std::span<const float> e, double density);
  /// Writes the rows of an epoch, none if nothing was added, and starts the next. Returns the
  /// histogram of u.
  Histogram write(int64_t epoch);
  /// Flushes the tables to the disk.
  void sync() const {
    table_.sync();
    histogram_.sync();
    if (residuals_) residuals_->sync();
  }

  static const char* const kHeader;           ///< of distributions.csv
  static const char* const kHistogramHeader;  ///< of both histograms

 private:
  /// ||residual||^2 / ||u||^2 after a selection from u_.
  double left_by(Context& ctx, Selector& selector, double density, const Moments& u);

  /// Counts of values by sign, exponent and the first three bits of the mantissa: eight bins per
  /// factor of two.
  using Bins = std::array<uint64_t, 4096>;
  struct Sums {
    uint64_t steps = 0;
    std::array<double, 5> powers{};  // of the entries: sums of x^0 to x^4
    double topk = 0, randk = 0, bound = 0;
    Bins u{}, residual{};
  };
  /// Appends the rows of an epoch to a table; returns their histogram.
  static Histogram write_bins(const Bins& bins, int64_t epoch, CsvFile& table);

  std::unique_ptr<Sums> sums_ = std::make_unique<Sums>();
  std::unique_ptr<Selector> topk_, randk_;
  CsvFile table_, histogram_;
  std::optional<CsvFile> residuals_;
  std::vector<float> u_, e_;
  std::vector<Moments> blocks_;
  SparseVector out_;
};

}  // namespace tw
