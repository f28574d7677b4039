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
  return std::min(n, entries_to_keep(density, n, Volume::at_most_k));
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

SelectInfo Dgc::select(Context& ctx, const SelectStep& in, SparseVector& out) {
  SelectInfo info;
  select_group(ctx, {&in, 1}, {&info, 1}, out);
  return info;
}

void Dgc::select_slices(Context& ctx, std::span<const SelectStep> slices,
                        std::span<SelectInfo> infos, SparseVector& out) {
  for (size_t first = 0; first < slices.size(); first += group_->most()) {
    const size_t count = std::min(group_->most(), slices.size() - first);
    select_group(ctx, slices.subspan(first, count), infos.subspan(first, count), out);
  }
}

void Dgc::select_group(Context& ctx, std::span<const SelectStep> slices,
                       std::span<SelectInfo> infos, SparseVector& out) {
  vectors_.clear();
  for (const SelectStep& in : slices) vectors_.push_back({in.g, in.e});
  group_->refer_to(vectors_);
  sample(ctx, slices);
  collections_.clear();
  for (size_t i = 0; i < slices.size(); ++i)
    collections_.push_back({i, true, reach(slices_[i].threshold), {}});
  group_->collect(ctx, collections_);
  lower(ctx);
  largest_.clear();
  for (size_t i = 0; i < slices.size(); ++i) largest_.push_back({slices_[i].k, slices[i].base});
  group_->take_largest(ctx, largest_, infos, out);
}

void Dgc::sample(Context& ctx, std::span<const SelectStep> slices) {
  samples_.clear();
  slices_.clear();
  for (const SelectStep& in : slices) {
    const auto [stride, count] = dgc_sample(in.e.size(), in.density);
    const uint32_t draw = philox_(in.step << 32 | in.slice)[0];
    const StridedSum sample{in.g, in.e, below(draw, static_cast<uint32_t>(stride)), stride};
    samples_.push_back({sample, share(in.density, count)});
    slices_.push_back({.k = share(in.density, in.e.size()), .threshold = 0, .lower = {}});
  }
  bits_.resize(slices.size());
  group_->nth_magnitudes(ctx, samples_, bits_);
  for (size_t i = 0; i < slices.size(); ++i) slices_[i].threshold = std::bit_cast<float>(bits_[i]);
}

bool Dgc::few(Context& ctx, size_t slice, uint32_t bits) {
  return static_cast<double>(group_->reaching(ctx, slice, bits)) <
         0.8 * static_cast<double>(slices_[slice].k);
}

void Dgc::lower(Context& ctx) {
  constexpr float lowering = 0.8f;
  collections_.clear();
  for (size_t i = 0; i < slices_.size(); ++i) {
    Slice& slice = slices_[i];
    if (!few(ctx, i, reach(slice.threshold))) continue;
    // one more pass counts the entries above each of the lower thresholds
    for (uint32_t& bits : slice.lower) bits = reach(slice.threshold *= lowering);
    collections_.push_back({i, false, slice.lower[0], slice.lower});
  }
  if (collections_.empty()) return;
  group_->collect(ctx, collections_);
  for (auto& [i, add, min_bits, lower] : collections_) {
    const uint32_t* last = lower.data();
    while (last < &lower.back() && few(ctx, i, *last)) ++last;
    min_bits = *last;
    lower = {};
  }
  std::erase_if(collections_, [&](const CandidateGroup::Collection& each) {
    return each.min_bits == slices_[each.vector].lower[0];
  });
  if (!collections_.empty()) group_->collect(ctx, collections_);
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
