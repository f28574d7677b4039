#include "sparsify/selectors/topk.h"

#include <algorithm>

#include "sparsify/sparsifier.h"

namespace tw {

SelectInfo TopK::select(Context& ctx, const SelectStep& in, SparseVector& out) {
  const size_t k = std::min(in.k, in.e.size());
  candidates_->collect_largest(ctx, in.g, in.e, k);
  return candidates_->take_largest(ctx, k, resolution_, in.e, in.base, out);
}

SelectInfo AboveThreshold::select(Context& ctx, float threshold, const SelectStep& in,
                                  SparseVector& out) {
  if (threshold <= 0) return exact_.select(ctx, in, out);
  candidates_->collect(ctx, in.g, in.e, candidate_bits(magnitude_bits(threshold)));
  return candidates_->take_largest(ctx, candidates_->count(), ~0u, in.e, in.base, out);
}

namespace {

const bool topk_selector =
    selectors().add({kTopk,
                     "the k largest magnitudes, exactly",
                     {.make = make_selector<TopK>, .volume = Volume::exactly_k, .exact = true}});
const bool topk_sparsifier =
    sparsifiers().add({kTopk,
                       "exact top-k, error feedback, sparse allgather",
                       {.selector = kTopk, .exchange = "allgather", .advice = Advice::first}});

}  // namespace

const char* const kTopk = "topk";

}  // namespace tw
