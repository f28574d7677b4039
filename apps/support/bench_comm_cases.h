// What `bench comm` times: dense collectives and sparse exchanges, each by every algorithm.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/collectives.h"
#include "comm/cost_model.h"
#include "sparsify/sparse_vector.h"

namespace tw {

/// The vectors of one rank; a call works on the first n elements.
struct CommVectors {
  std::vector<float> data, scratch;  ///< data has one element more than n
  GatheredBlocks blocks;
  SparseVector entries;
};

struct CommCase {
  std::string collective, algorithm;
  /// Before every call; not timed.
  std::function<void(const Communicator&, CommVectors&, size_t n)> fill;
  std::function<void(Context&, Communicator&, CommVectors&, size_t n)> run;
  /// Elements that are not, on this rank, what the call should have made of the first filling.
  std::function<size_t(Context&, Communicator&, CommVectors&, size_t n)> wrong;
  double bus = 0;  ///< busbw / algbw: what the busiest port must carry, in sizes; 0: undefined
  /// Seconds by the model; empty for a black box.
  std::function<double(const Wire&, int ranks, double n)> cost{};
};

/// Broadcast, reduce and allreduce by every registered algorithm, and the allgather.
std::vector<CommCase> dense_cases(const Settings& settings, Communicator& comm, int root);
/// Every sparse exchange that the cost model knows and that takes entries of any place; each rank
/// has max(1, density n) of them, one in every stretch of the vector.
std::vector<CommCase> sparse_cases(const Settings& settings, double density);

}  // namespace tw
