// The cases of `bench comm`: every implementation of the dense collectives and sparse exchanges.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/collectives/collectives.h"
#include "engine/core/buffer.h"
#include "sparsify/kernels/sparse_vector.h"

namespace tw {

/// The vectors of one rank, on its device; calls use the first n <= `most` elements.
struct CommVectors {
  CommVectors(Context& ctx, size_t most)
      : memory(ctx.device(), (most + 1) * sizeof(float)),
        scratch_memory(ctx.device(), most * sizeof(float)) {}
  std::span<float> data(size_t n) const { return memory.as<float>().first(n); }
  std::span<float> scratch(size_t n) const { return scratch_memory.as<float>().first(n); }

  Buffer memory, scratch_memory;
  std::vector<float> block;  ///< of the allgather, which works in host memory
  GatheredBlocks blocks;
  SparseVector entries;
};

struct CommCase {
  std::string collective, algorithm;
  /// Prepares a call; not timed.
  std::function<void(Context&, const Communicator&, CommVectors&, size_t n)> fill;
  std::function<void(Context&, Communicator&, CommVectors&, size_t n)> run;
  /// Number of wrong elements on this rank after one fill() and run().
  std::function<size_t(Context&, Communicator&, CommVectors&, size_t n)> wrong;
  double bus = 0;  ///< busbw / algbw: bytes of the busiest port / size; 0: undefined
  /// Seconds by the cost model; NaN for those of a library.
  std::function<double(const LinkCost&, int ranks, double n)> cost{};
  std::vector<std::string> aliases{};  ///< other names of `algorithm`
  bool by_library = false;             ///< its bytes are not counted
};

/// Broadcast, reduce and allreduce by every registered algorithm, and the allgather.
std::vector<CommCase> dense_cases(const Settings& settings, Communicator& comm, int root);
/// Every sparse exchange that needs neither shared indices nor nodes. Each rank has max(1, density
/// n) entries, spread evenly over the vector.
std::vector<CommCase> sparse_cases(const Settings& settings, double density);
/// Every exchange that compresses, a low-rank or a quantized one, for a vector that is one
/// nearly square matrix.
std::vector<CommCase> low_rank_cases(const Settings& settings);

}  // namespace tw
