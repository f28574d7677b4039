// GradientStatistics: how the entries of u = g + e are distributed during training, and what Top-k
// and Rand-k leave of them beside the bound of theory (Shi et al. 2019, arXiv 1911.08772). Where
// momentum comes before the selection, e is accumulated velocity, and u lacks the velocity of this
// step.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "apps/train/csv.h"
#include "sparsify/kernels/moments.h"
#include "sparsify/selector.h"

namespace tw {

class GradientStatistics {
 public:
  /// Starts distributions.csv (a row for each epoch) and histograms.csv (a row for each bin of an
  /// epoch that is not empty) in `folder`, or goes on behind epoch `keep_through`.
  GradientStatistics(Context& ctx, const std::filesystem::path& folder, int64_t keep_through);

  /// Adds the u of one step, before anything is selected from it; e empty: u = g. Changes neither.
  /// A u that is zero or not finite is left out.
  void add(Context& ctx, std::span<const float> g, std::span<const float> e, double density);
  /// Writes the rows of an epoch (none if nothing was added) and starts the next.
  void write(int64_t epoch);

  static const char* const kHeader;           ///< of distributions.csv
  static const char* const kHistogramHeader;  ///< of histograms.csv

 private:
  /// What a selector leaves of u_.
  double left_by(Context& ctx, Selector& selector, double density, const Moments& u);

  struct Sums {
    uint64_t steps = 0;
    std::array<double, 5> powers{};  // of the entries: sums of x^0 to x^4
    double topk = 0, randk = 0, bound = 0;
    // by sign, exponent and the first three bits of the mantissa: eight bins to a factor of two
    std::array<uint64_t, 4096> bins{};
  };
  std::unique_ptr<Sums> sums_ = std::make_unique<Sums>();
  std::unique_ptr<Selector> topk_, randk_;
  CsvFile table_, histogram_;
  std::vector<float> u_, e_;
  std::vector<Moments> blocks_;
  SparseVector out_;
};

}  // namespace tw
