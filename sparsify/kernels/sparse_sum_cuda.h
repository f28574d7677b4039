// Sums of sparse vectors whose entries lie in memory that kernels can read. There the values of a
// part follow its indices, and the next part follows.
// Included by .cu files only.
#pragma once

#include <cstddef>
#include <span>

#include "engine/core/context.h"
#include "sparsify/kernels/sparse_vector.h"

namespace tw::cuda {

/// Bytes of the entries of all parts.
size_t staged_bytes(std::span<const SparseView> parts);
/// Copies the entries of all parts to `memory` of staged_bytes().
void stage(std::span<const SparseView> parts, std::byte* memory);
/// Adds the entries in `staged`, a copy of `parts` that ctx's device can read, to x in the order of
/// the parts. A part has no index twice, so the sums have the bits of the CPU.
void add_staged(Context& ctx, std::span<const SparseView> parts, const std::byte* staged,
                std::span<float> x);

}  // namespace tw::cuda
