// SIDCo (Abdelmoniem et al., MLSys 2021, and the authors' code): a threshold from exponential
// distributions that are fitted to the magnitudes.
#pragma once

#include <optional>
#include <vector>

#include "sparsify/kernels/candidates.h"
#include "sparsify/selector.h"

namespace tw {

struct SidcoOptions {
  uint32_t stages = 0;        ///< fits in a step; 0: adapted
  double first_ratio = 0.25;  ///< share of the entries that the first of several fits keeps
  uint32_t adapt_every = 5;   ///< steps
  double tolerance_up = 0.2, tolerance_down = 0.2;  ///< of sent / k, before the stages change
};

/// With rho = density, M stages and r = first_ratio (M = 1 or rho >= r: r = rho):
///   thr = -mean |u| ln r
///   M - 1 times:  A = {|u_i| > every thr so far};  a = min A
///       thr = a - (mean A - a) ln((rho / first_ratio)^(1 / (M - 1)))
///   sends every |u_i| > thr; the k largest if some A is empty
///   every adapt_every steps:  mean of sent / k > 1 + tolerance_up: M -= 1;
///       < 1 - tolerance_down: M += 1;  1 <= M <= ceil(log2(1 / rho))
/// M begins at 1.
class Sidco final : public Selector {
 public:
  Sidco(Context& ctx, const SidcoOptions& options, size_t slices);

  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override;
  std::span<std::byte> state() override;

 private:
  /// What changes from step to step, of a slice.
  struct Stages {
    uint32_t stages = 1;
    uint32_t steps = 0;     // since the last change
    double sent_ratio = 0;  // sum over these steps
  };

  /// The number of entries to collect in the pass that adds: those of the first fit with few, for
  /// it and the fits after it; with one fit, those that the last step sent. The fits before it take
  /// a pass each, which is faster than a long list.
  size_t to_collect(const SelectStep& in, uint32_t stages) const;
  /// The threshold for u = in.e, whose mean magnitude is given; none if a fit has no entries.
  std::optional<double> fit(Context& ctx, const SelectStep& in, double mean, uint32_t stages);
  void adapt(Stages& of, double sent_ratio, double density) const;

  SidcoOptions options_;
  std::vector<Stages> slices_;
  std::vector<size_t> sent_;  // in the last step, of a slice; decides on passes, not on the result
  std::unique_ptr<Candidates> candidates_;
};

}  // namespace tw
