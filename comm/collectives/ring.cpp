// Ring allreduce (Patarasuk & Yuan 2009): reduce-scatter, then allgather, both around one ring.
// The n floats are cut into P chunks. In step s of the first half, rank r sends chunk r-s to its
// right neighbour and adds the chunk r-s-1 from its left: after P-1 steps it holds the sum of chunk
// r+1. The second half passes the finished chunks on. One chain of ranks sums each chunk and the
// others copy it, so all ranks get the same bits.
//
// Per rank 2(P-1) messages; over all ranks 2(P-1) 4n bytes.
// Time 2(P-1) alpha + 2(P-1)/P n beta + (P-1)/P n gamma.

#include "comm/collectives/collectives.h"
#include "comm/collectives/common.h"
#include "engine/ops/vector.h"

namespace tw {
namespace {

void ring_allreduce(Context& ctx, Communicator& comm, std::span<float> data,
                    std::span<float> scratch) {
  const OperationScope operation(comm, "ring");
  const int ranks = comm.size(), rank = comm.rank();
  check_scratch("ring", data, scratch);
  const auto wrapped = [&](int i) { return ((i % ranks) + ranks) % ranks; };
  const auto chunk = [&](int i) { return chunks(data, ranks, wrapped(i), wrapped(i) + 1); };
  const auto pass_on = [&](std::span<const float> out, std::span<float> in) {
    exchange_exactly("ring", ctx, comm, wrapped(rank + 1), out, wrapped(rank - 1), in);
  };

  for (int step = 0; step < ranks - 1; ++step) {
    const auto sum = chunk(rank - step - 1), incoming = scratch.first(sum.size());
    pass_on(chunk(rank - step), incoming);
    ops::add(ctx, incoming, sum);
  }
  for (int step = 0; step < ranks - 1; ++step) pass_on(chunk(rank + 1 - step), chunk(rank - step));
}

double ring_seconds(const LinkCost& link, int ranks, double n) {
  return 2 * (ranks - 1) * link.alpha + others_share(ranks) * n * (2 * link.beta + link.gamma);
}

const bool ring_registered =
    allreduces().add({"ring",
                      "reduce-scatter and allgather around a ring; the fewest bytes per rank",
                      {[](const Settings&) -> Allreduce { return ring_allreduce; }, ring_seconds}});

}  // namespace

void allreduce(Communicator& comm, std::span<float> data) {
  std::vector<float> scratch(data.size());
  ring_allreduce(comm.host(), comm, data, scratch);
}

}  // namespace tw
