// HostCandidates: candidates on the CPU, as lists.
#pragma once

#include <vector>

#include "sparsify/kernels/candidates.h"
#include "sparsify/kernels/top_candidates.h"

namespace tw {

class HostCandidates : public Candidates {
 public:
  uint32_t nth_magnitude(Context& ctx, const StridedSum& sample, size_t nth) override;
  void collect(Context& ctx, std::span<const float> g, std::span<float> e, uint32_t min_bits,
               std::span<const uint32_t> lower = {}) override;
  void collect_largest(Context& ctx, std::span<const float> g, std::span<float> e,
                       size_t k) override;
  void widen(Context& ctx, std::span<float> e, uint32_t bits) override;
  size_t count() override;
  size_t reaching(uint32_t bits) override;
  SelectInfo take_largest(Context& ctx, size_t k, uint32_t resolution, std::span<float> e,
                          uint32_t base, SparseVector& out) override;
  void take(Context& ctx, uint32_t bits, std::span<float> e, uint32_t base,
            SparseVector& out) override;

  /// Ascending runs that follow each other; how u is cut into runs depends on the thread count,
  /// their concatenation does not.
  std::span<const SparseVector> runs() const { return {runs_.data(), in_use_}; }

 private:
  std::vector<SparseVector> runs_;  // more than in use after a longer vector: memory is kept
  size_t in_use_ = 0;
  uint32_t min_bits_ = 0;
  std::vector<uint32_t> lower_;
  std::vector<size_t> counted_;  // for each run, for each of lower_
  std::vector<uint32_t> magnitudes_;
  TopCandidates top_;
  LogHistogram sample_;
  std::vector<LogHistogram> whole_;  // of all of u, one a thread
};

/// A threshold (magnitude bits) that about k entries of u = g + e reach, rather more than fewer, as
/// a small sample has it. g may be empty: e holds u already.
uint32_t sampled_threshold(std::span<const float> g, std::span<const float> e, size_t k,
                           LogHistogram& histogram);

/// The bin edge that at least k entries of u reach and fewer than k exceed by a bin; reads all of
/// u. Never 0: zeros are no candidates. `histograms`, one a thread, belong to the caller so that
/// the next call allocates nothing.
uint32_t counted_threshold(Context& ctx, std::span<const float> u, size_t k,
                           std::vector<LogHistogram>& histograms);

/// Moves every entry of the runs with rank_key >= cut, `most` at most, to `out`, ascending, and
/// zeroes it in e.
void take(std::span<const SparseVector> runs, uint64_t cut, size_t most, uint32_t resolution,
          std::span<float> e, uint32_t base, SparseVector& out);

}  // namespace tw
