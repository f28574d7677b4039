#include "sparsify/exchanges/topk_merge.h"

#include <algorithm>

#include "sparsify/kernels/candidates.h"

namespace tw {

namespace {

// Each sum is written, and kept by advancing the count: no branch on which side is next.
size_t add(const SparseView& a, const SparseView& b, SparseVector& out) {
  const size_t a_end = a.indices.size(), b_end = b.indices.size();
  size_t i = 0, j = 0, count = 0;
  while (i < a_end && j < b_end) {
    const uint32_t at_a = a.indices[i], at_b = b.indices[j];
    const bool from_a = at_a <= at_b, from_b = at_b <= at_a;
    const float sum = (from_a ? a.values[i] : 0.0f) + (from_b ? b.values[j] : 0.0f);
    out.indices[count] = from_a ? at_a : at_b;
    out.values[count] = sum;
    count += sum != 0;
    i += from_a;
    j += from_b;
  }
  const auto append = [&](const SparseView& rest, size_t from) {
    std::ranges::copy(rest.indices.subspan(from), out.indices.begin() + count);
    std::ranges::copy(rest.values.subspan(from), out.values.begin() + count);
    count += rest.indices.size() - from;
  };
  append(a, i);
  append(b, j);
  return count;
}

}  // namespace

void prune_to_k(SparseVector& v, size_t k, std::vector<uint64_t>& keys, SparseVector* pruned) {
  keys.reserve(v.capacity());  // v.count varies from step to step
  if (v.count <= k) return;
  keys.resize(v.count);
  for (size_t i = 0; i < v.count; ++i) keys[i] = rank_key(v.values[i], v.indices[i]);
  const uint64_t cut = kth_largest(keys, k);
  size_t kept = 0;
  for (size_t i = 0; i < v.count; ++i) {
    const uint32_t index = v.indices[i];
    const float value = v.values[i];
    const bool stays = rank_key(value, index) >= cut;
    if (!stays && pruned) pruned->push(index, value);
    v.indices[kept] = index;
    v.values[kept] = value;
    kept += stays;
  }
  v.count = kept;
}

void TopkMerge::operator()(const SparseView& a, const SparseView& b, size_t k, SparseVector& out,
                           SparseVector* pruned) {
  const size_t most = a.indices.size() + b.indices.size();
  if (pruned) {
    pruned->count = 0;
    pruned->reserve(most);
  }
  out.count = 0;
  out.reserve(most);
  out.count = add(a, b, out);
  prune_to_k(out, k, keys_, pruned);
}

}  // namespace tw
