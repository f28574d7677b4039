// Binomial tree (also: minimum spanning tree, hence the alias mst) of ceil(log2 P) rounds, with
// whole vectors. With ranks counted from the root, rank v receives from v without its highest bit
// and then sends to v + 2^j for every higher bit j; a reduction runs the same tree backwards.
//
// Broadcast and reduce: P-1 messages of all n elements, over all ranks (P-1) 4n bytes. Allreduce:
// a reduce to rank 0 and a broadcast from there, twice that.
// Seconds, with L = ceil(log2 P): broadcast L (alpha + n beta), reduce L (alpha + n beta + n
// gamma), allreduce the sum of both. Best for short vectors.

#include <bit>

#include "comm/collectives/collectives.h"
#include "comm/collectives/common.h"
#include "engine/ops/vector.h"

namespace tw {

void broadcast(Context& ctx, Communicator& comm, int root, Bytes data) {
  const OperationScope operation(comm, "broadcast");
  const RelativeRank order(comm, root);
  const int ranks = comm.size(), self = order.relative(comm.rank());
  for (int distance = 1; distance < ranks; distance *= 2) {
    if (self < distance) {
      if (self + distance < ranks) comm.send(ctx, order.rank(self + distance), data);
    } else if (self < 2 * distance) {
      exchange_exactly("broadcast", ctx, comm, -1, {}, order.rank(self - distance), data);
    }
  }
}

namespace {

constexpr const char* kName = "binomial_tree";

void reduce(Context& ctx, Communicator& comm, int root, std::span<float> data,
            std::span<float> scratch) {
  const OperationScope operation(comm, kName);
  check_scratch(kName, data, scratch);
  const RelativeRank order(comm, root);
  const int ranks = comm.size(), self = order.relative(comm.rank());
  const std::span<float> incoming = scratch.first(data.size());
  const auto rounds = std::bit_ceil(static_cast<unsigned>(ranks));
  for (int distance = static_cast<int>(rounds) / 2; distance > 0; distance /= 2) {
    if (self < distance) {
      if (self + distance >= ranks) continue;
      exchange_exactly(kName, ctx, comm, -1, {}, order.rank(self + distance), incoming);
      ops::add(ctx, incoming, data);
    } else if (self < 2 * distance) {
      comm.send(ctx, order.rank(self - distance), std::as_bytes(data));
    }
  }
}

void allreduce(Context& ctx, Communicator& comm, std::span<float> data, std::span<float> scratch) {
  const OperationScope operation(comm, kName);
  reduce(ctx, comm, 0, data, scratch);
  broadcast(ctx, comm, 0, std::as_writable_bytes(data));
}

// Thakur, Rabenseifner & Gropp 2005
double broadcast_seconds(const LinkCost& link, int ranks, double n) {
  return tree_rounds(ranks) * (link.alpha + n * link.beta);
}
double reduce_seconds(const LinkCost& link, int ranks, double n) {
  return tree_rounds(ranks) * (link.alpha + n * (link.beta + link.gamma));
}
double allreduce_seconds(const LinkCost& link, int ranks, double n) {
  return reduce_seconds(link, ranks, n) + broadcast_seconds(link, ranks, n);
}

Broadcast make_broadcast(const Settings&) {
  return [](Context& ctx, Communicator& comm, int root, Bytes data) {
    broadcast(ctx, comm, root, data);
  };
}
Reduce make_reduce(const Settings&) { return reduce; }
Allreduce make_allreduce(const Settings&) { return allreduce; }

constexpr const char* kHelp =
    "binomial tree with whole vectors; the fewest messages, for short vectors";

const bool binomial_tree_registered =
    broadcasts().add({kName, kHelp, {make_broadcast, broadcast_seconds}, {}, {"mst"}}) &&
    reduces().add({kName, kHelp, {make_reduce, reduce_seconds}, {}, {"mst"}}) &&
    allreduces().add({kName, kHelp, {make_allreduce, allreduce_seconds}, {}, {"mst"}});

}  // namespace
}  // namespace tw
