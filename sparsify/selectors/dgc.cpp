// The selection of Deep Gradient Compression (Lin, Han, Mao, Wang and Dally, ICLR 2018, arXiv
// 1712.01887), after the authors' code. Momentum correction, factor masking and clipping belong to
// SyncSgd and work with any selector (momentum_correction.h).

#include "sparsify/selectors/dgc.h"

#include <algorithm>
#include <cmath>

#include "sparsify/sparsifier.h"

namespace tw {

namespace {

size_t share(double density, size_t n) {
  const double part = std::ceil(density * static_cast<double>(n));
  return std::clamp<size_t>(static_cast<size_t>(part), 1, n);
}

uint32_t reach(float threshold) { return candidate_bits(magnitude_bits(threshold)); }

}  // namespace

// Strides are odd: they share no factor with tensor shapes, which are mostly powers of two.
DgcSample dgc_sample(size_t n, double density) {
  const size_t most = static_cast<size_t>(std::ceil(2 / density));
  if (n <= most) return {.stride = 1, .count = n};
  const size_t wanted = std::max(share(0.01, n), most);
  size_t stride = (n / wanted + (n % wanted != 0) + 31) / 32 * 32 + 1;
  while (n / stride < wanted) stride -= 8;
  return {.stride = stride, .count = n / stride};
}

float Dgc::sampled(Context& ctx, const SelectStep& in) {
  const auto [stride, count] = dgc_sample(in.e.size(), in.density);
  const uint32_t draw = philox_(in.step << 32 | in.base)[0];
  const StridedSum sample{in.g, in.e, below(draw, static_cast<uint32_t>(stride)), stride};
  const size_t nth = share(in.density, count);
  return std::bit_cast<float>(candidates_->nth_magnitude(ctx, sample, nth));
}

SelectInfo Dgc::select(Context& ctx, const SelectStep& in, SparseVector& out) {
  constexpr int rounds = 10;
  constexpr float lowering = 0.8f;
  const std::span<float> e = in.e;
  const size_t k = share(in.density, e.size());
  const auto few = [&](size_t count) {
    return static_cast<double>(count) < 0.8 * static_cast<double>(k);
  };

  float threshold = sampled(ctx, in);
  candidates_->collect(ctx, in.g, e, reach(threshold));
  if (few(candidates_->count())) {
    // one more pass counts the entries above each of the lower thresholds
    uint32_t lower[rounds];
    for (uint32_t& bits : lower) bits = reach(threshold *= lowering);
    candidates_->collect(ctx, {}, e, lower[0], lower);
    const uint32_t* last = lower;
    while (last < std::end(lower) - 1 && few(candidates_->reaching(*last))) ++last;
    candidates_->widen(ctx, e, *last);
  }
  return candidates_->take_largest(ctx, k, ~0u, e, in.base, out);
}

namespace {

std::unique_ptr<Selector> make_dgc(Context& ctx, const Settings&, const SelectorRank& rank) {
  return std::make_unique<Dgc>(
      ctx, Philox(rank.seed, Purpose::select, static_cast<uint32_t>(rank.rank) + 1));
}

const bool dgc_selector = selectors().add({"dgc",
                                           "magnitudes above a threshold from a sample, k at most",
                                           {.make = make_dgc, .volume = Volume::at_most_k}});
const Sparsifier kParts = {.selector = "dgc",
                           .exchange = "allgather",
                           .momentum_before = true,
                           .scope = Scope::layer,
                           .small_tensors_dense = true};
const bool dgc_sparsifier = sparsifiers().add(
    {"dgc", "momentum correction, factor masking, sampled threshold per tensor, sparse allgather",
     kParts});

}  // namespace

}  // namespace tw
