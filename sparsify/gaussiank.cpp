#include "sparsify/gaussiank.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/parallel.h"
#include "engine/simd.h"
#include "sparsify/normal_quantile.h"
#include "sparsify/sync_sgd.h"
#include "sparsify/topk.h"

namespace tw {

constinit Bodies<std::unique_ptr<Selector>(const Settings&)> gaussiank_bodies{"gaussiank"};

namespace {

constexpr size_t kBlock = 4096;
constexpr size_t kLanes = 8;
// the compiler's own vectors: it does not find the fixed lanes in plain loops
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
typedef double WideLanes __attribute__((vector_size(kLanes * sizeof(double))));

// e += g, with the sums of e and of its squares kept in fixed lanes; a square is exact in double,
// so fused or not the bits are the same
TW_MULTIVERSION void add_moments(const float* g, float* e, size_t n, double* sum, double* square) {
  WideLanes sums = {}, squares = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes u, gradient;
    std::memcpy(&u, e + i, sizeof u);
    std::memcpy(&gradient, g + i, sizeof gradient);
    u += gradient;
    std::memcpy(e + i, &u, sizeof u);
    const WideLanes wide = __builtin_convertvector(u, WideLanes);
    sums += wide;
    squares += wide * wide;
  }
  for (; i < n; ++i) {
    e[i] += g[i];
    sums[0] += double{e[i]};
    squares[0] += double{e[i]} * double{e[i]};
  }
  for (size_t j = 0; j < kLanes; ++j) {
    *sum += sums[j];
    *square += squares[j];
  }
}

// the least magnitude above the threshold, as bits: everything passes a negative threshold,
// nothing finite one that no float exceeds
uint32_t bits_above(double threshold) {
  if (threshold < 0) return 0;
  if (threshold >= double{std::numeric_limits<float>::max()}) return kInfinityBits;
  const float nearest = static_cast<float>(threshold);
  return magnitude_bits(nearest) + (double{nearest} <= threshold ? 1 : 0);
}

size_t count_above(const Candidates& candidates, double threshold) {
  const uint32_t bits = bits_above(threshold);
  size_t count = 0;
  for (const SparseVector& run : candidates.runs())
    for (size_t i = 0; i < run.count; ++i) count += magnitude_bits(run.values[i]) >= bits;
  return count;
}

}  // namespace

GaussianPaper::Moments GaussianPaper::add_and_measure(Context& ctx, std::span<const float> g,
                                                      std::span<float> e) {
  blocks_.assign((e.size() + kBlock - 1) / kBlock, {});
  parallel_for(ctx, e.size(), kBlock, [&](size_t begin, size_t end) {
    Moments& block = blocks_[begin / kBlock];
    add_moments(g.data() + begin, e.data() + begin, end - begin, &block.sum, &block.square);
  });
  Moments total;
  for (const Moments& block : blocks_) {
    total.sum += block.sum;
    total.square += block.square;
  }
  return total;
}

SelectInfo GaussianPaper::select(Context& ctx, const SelectStep& in, SparseVector& out) {
  const std::span<float> e = in.e;
  const double d = static_cast<double>(e.size());
  const size_t k = std::min(in.k, e.size());
  const Moments moments = add_and_measure(ctx, in.g, e);
  if (!std::isfinite(moments.square)) {
    const auto bad = std::ranges::find_if_not(e, [](float u) { return std::isfinite(u); });
    return {.nonfinite = static_cast<size_t>(bad - e.begin()), .nonfinite_value = *bad};
  }

  const double mean = moments.sum / d;
  const double variance = (moments.square - moments.sum * mean) / std::max(1.0, d - 1);
  const double quantile = std::abs(normal_quantile(in.density / 2));
  // in double all along: what no float reaches may still be halved into reach
  const double first = mean + quantile * std::sqrt(std::max(0.0, variance));

  // one pass answers for the first threshold and all above it, and counts for half of it; that
  // settles which one is evaluated last
  const auto few = [&](size_t count) { return 3 * count < 2 * k; };
  const auto many = [&](size_t count) { return 3 * count > 4 * k; };
  const size_t at_half =
      candidates_.collect_and_count(ctx, {}, e, bits_above(first), bits_above(first * 0.5));
  double last = first;
  if (few(candidates_.count())) {
    last *= 0.5;
    if (few(at_half)) last *= 0.5;
    if (many(at_half)) last *= 1.5;
  } else if (many(candidates_.count())) {
    last *= 1.5;
    const size_t count = count_above(candidates_, last);
    if (few(count)) last *= 0.5;
    if (many(count)) last *= 1.5;
  }
  if (last < first && first >= 0) candidates_.collect(ctx, {}, e, bits_above(last));

  // zeros may pass a threshold below zero, but there is nothing in them to send
  take(candidates_, uint64_t{std::max(1u, bits_above(last))} << 32, ~0u, e, in.base, out);
  return {.threshold = static_cast<float>(std::max(last, 0.0))};
}

namespace {

// the upper 16 bits of a magnitude: threshold at a bin edge, its bin cut to k by index
constexpr uint32_t kHistogramResolution = ~0u << LogHistogram::kShift;

std::unique_ptr<Selector> make_gaussiank(const Settings& settings) {
  if (settings.text("gaussiank.refine") == "paper") return std::make_unique<GaussianPaper>();
  return std::make_unique<TopK>(kHistogramResolution);
}

const std::vector<Setting> kSettings = {
    {"refine",
     "histogram",
     "histogram: k entries, threshold at a bin of a logarithmic histogram; "
     "paper: mean + quantile * deviation, adjusted at most twice",
     {"histogram", "paper"}}};

const bool body = gaussiank_bodies.add(Device::cpu, make_gaussiank);
const bool selector =
    selectors().add({"gaussiank", "magnitudes above a threshold taken from the distribution of u",
                     [](Context& ctx, const Settings& s, const SelectorRank&) {
                       return gaussiank_bodies(ctx.device(), s);
                     },
                     kSettings});
const bool algorithm = algorithms().add({"gaussiank",
                                         "Gaussian threshold, error feedback, sparse allgather",
                                         {.selector = "gaussiank", .exchange = "allgather"}});

}  // namespace

}  // namespace tw
