// The loop that adjusts a Gaussian threshold (Shi et al. 2019, arXiv 1911.08772, and the authors'
// code), and its forecast from a sample.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tw {

/// x with Phi(x) = p, for p in (0, 1), to about 1e-15 relative, where Phi is the standard normal
/// distribution function. (Wichura, AS 241, PPND16, 1988)
double normal_quantile(double p);

/// How a count compares with k.
enum class Judgement { few, enough, many };
constexpr Judgement judge(double count, double k) {
  if (3 * count < 2 * k) return Judgement::few;
  return 3 * count > 4 * k ? Judgement::many : Judgement::enough;
}

/// The threshold that the authors' loop evaluates last: it starts from `first` and adjusts twice at
/// most. `judged(threshold)` compares the number of magnitudes above a threshold with k.
template <class Judge>
double last_threshold(double first, const Judge& judged) {
  double threshold = first;
  for (int adjustments = 0; adjustments < 2; ++adjustments) {
    const Judgement found = judged(threshold);
    if (found == Judgement::enough) break;
    threshold *= found == Judgement::few ? 0.5 : 1.5;
  }
  return threshold;
}

/// The first threshold, mean + |quantile(density / 2)| * deviation, from sums over n elements. In
/// double: a threshold above the largest float may be halved back into range.
double first_threshold(double sum, double square, size_t n, double density);

/// What a sample foretells of the loop over a whole vector.
class GaussianForecast {
 public:
  /// Samples u = g + e, host memory. g may be empty: e holds u already.
  void make(std::span<const float> g, std::span<const float> e, size_t k, double density);

  /// The threshold evaluated last, lowered by its uncertainty; so low that the entries above it are
  /// judged many if those above an earlier threshold are.
  double least() const { return least_; }

 private:
  double least_ = 0;
  std::vector<float> sample_;
};

}  // namespace tw
