// CandidateGroup: candidates of several vectors. On a GPU their passes share launches, copies and
// waits. On the CPU a group is one vector, which then stays in the cache from pass to pass.
#pragma once

#include "sparsify/kernels/candidates.h"

namespace tw {

struct NthOfSample {
  StridedSum sample;
  size_t nth;  ///< 1 is the largest
};

/// As Candidates, for a group of vectors.
class CandidateGroup {
 public:
  virtual ~CandidateGroup() = default;
  static std::unique_ptr<CandidateGroup> create(Context& ctx);

  struct Vector {
    std::span<const float> g;
    std::span<float> e;
  };
  /// How many vectors a group holds at most.
  virtual size_t most() const = 0;
  /// Begins with other vectors.
  virtual void refer_to(std::span<const Vector> vectors) = 0;

  /// One sample and one result for each vector.
  virtual void nth_magnitudes(Context& ctx, std::span<const NthOfSample> samples,
                              std::span<uint32_t> bits) = 0;

  struct Collection {
    size_t vector;
    bool add;  ///< e += g first; the same in all collections of a call
    uint32_t min_bits;
    std::span<const uint32_t> lower;
  };
  virtual void collect(Context& ctx, std::span<const Collection> collections) = 0;
  /// `bits`: min_bits or one of `lower` of the vector's last collection.
  virtual size_t reaching(Context& ctx, size_t vector, uint32_t bits) = 0;

  struct Largest {
    size_t k;
    uint32_t base;
  };
  /// One call for all vectors, which appends to `out` in their order.
  virtual void take_largest(Context& ctx, std::span<const Largest> wanted,
                            std::span<SelectInfo> infos, SparseVector& out) = 0;
};

inline constinit DispatchTable<std::unique_ptr<CandidateGroup>()> candidate_group_dispatch{
    "candidate_group"};

}  // namespace tw
