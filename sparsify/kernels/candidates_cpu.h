// HostCandidates: candidates on the CPU, as lists.
#pragma once

#include <vector>

#include "sparsify/kernels/candidates.h"

namespace tw {

class HostCandidates : public Candidates {
 public:
  uint32_t nth_magnitude(Context& ctx, const StridedSum& sample, size_t nth) override;
  void collect(Context& ctx, std::span<const float> g, std::span<float> e, uint32_t min_bits,
               std::span<const uint32_t> lower = {}, Moments* moments = nullptr) override;
  void collect_largest(Context& ctx, std::span<const float> g, std::span<float> e, size_t k,
                       Moments* moments = nullptr) override;
  bool keeps(uint32_t bits) override { return bits >= min_bits_; }
  size_t count() override;
  size_t reaching(uint32_t bits) override;
  Tail tail(Context& ctx, std::span<const float> u, uint32_t bits) override;
  SelectInfo take_largest(Context& ctx, size_t k, uint32_t resolution, std::span<float> e,
                          uint32_t base, SparseVector& out) override;
  void take(Context& ctx, uint32_t bits, std::span<float> e, uint32_t base,
            SparseVector& out) override;

  /// Consecutive runs with ascending indices. The number of runs depends on the thread count, their
  /// concatenation does not.
  std::span<const SparseVector> runs() const { return {runs_.data(), in_use_}; }

 private:
  /// The key of the k-th largest candidate; 0 if there are no more than k. Uses taken_.
  uint64_t cut_key(size_t k, uint32_t resolution);
  /// Moves the candidates with rank_key >= cut, `most` at most, from e to `out`.
  void take_from(uint64_t cut, size_t most, uint32_t resolution, std::span<float> e, uint32_t base,
                 SparseVector& out) const;

  std::vector<SparseVector> runs_;  // more than in use after a longer vector: memory is kept
  size_t in_use_ = 0;
  uint32_t min_bits_ = 0;
  std::vector<uint32_t> lower_;
  std::vector<size_t> counted_;  // for each run, for each of lower_
  std::vector<uint32_t> magnitudes_;
  LogHistogram sample_, taken_;
  std::vector<LogHistogram> whole_;  // of all of u, one per thread
  std::vector<uint64_t> keys_;
};

/// Magnitude bits that about k entries of u = g + e reach, estimated from a small sample and biased
/// towards more than k. g may be empty: e holds u already.
uint32_t sampled_threshold(std::span<const float> g, std::span<const float> e, size_t k,
                           LogHistogram& histogram);

}  // namespace tw
