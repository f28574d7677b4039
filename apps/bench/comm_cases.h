// What `bench comm` times: dense collectives and sparse exchanges, each by every algorithm.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/collectives/collectives.h"
#include "comm/cost_model.h"
#include "engine/core/buffer.h"
#include "sparsify/kernels/sparse_vector.h"

namespace tw {

/// The vectors of one rank, on its device, for calls that work on the first n <= `most` elements.
struct CommVectors {
  CommVectors(Context& ctx, size_t most)
      : memory(ctx.device(), (most + 1) * sizeof(float)),
        scratch_memory(ctx.device(), most * sizeof(float)) {}
  std::span<float> data(size_t n) const { return memory.as<float>().first(n); }
  std::span<float> scratch(size_t n) const { return scratch_memory.as<float>().first(n); }

  Buffer memory, scratch_memory;
  std::vector<float> block;  ///< for the allgather: blocks travel from the host's memory to it
  GatheredBlocks blocks;
  SparseVector entries;
};

struct CommCase {
  std::string collective, algorithm;
  /// Before every call; not timed.
  std::function<void(Context&, const Communicator&, CommVectors&, size_t n)> fill;
  std::function<void(Context&, Communicator&, CommVectors&, size_t n)> run;
  /// Elements that are not, on this rank, what the call should have made of the first filling.
  std::function<size_t(Context&, Communicator&, CommVectors&, size_t n)> wrong;
  double bus = 0;  ///< busbw / algbw: what the busiest port must carry, in sizes; 0: undefined
  /// Seconds by the model; empty for a black box.
  std::function<double(const LinkCost&, int ranks, double n)> cost{};
  std::vector<std::string> aliases{};  ///< other names of `algorithm`
};

/// Broadcast, reduce and allreduce by every registered algorithm, and the allgather.
std::vector<CommCase> dense_cases(const Settings& settings, Communicator& comm, int root);
/// Every sparse exchange that the cost model knows and that takes entries of any place; each rank
/// has max(1, density n) of them, one in every stretch of the vector.
std::vector<CommCase> sparse_cases(const Settings& settings, double density);

}  // namespace tw
