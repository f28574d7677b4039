// Dissemination barrier (Hensgen, Finkel & Manber 1988): in round k rank r sends to r + 2^k and
// receives from r - 2^k. After ceil(log2 P) rounds each rank has heard from all, directly or not.
// Per rank ceil(log2 P) messages, 0 bytes.

#include "comm/collectives/collectives.h"

namespace tw {

void barrier(Context& ctx, Communicator& comm) {
  const OperationScope operation(comm, "barrier");
  const int ranks = comm.size(), rank = comm.rank();
  for (int distance = 1; distance < ranks; distance *= 2)
    comm.exchange(ctx, (rank + distance) % ranks, {}, (rank - distance + ranks) % ranks, {});
}

}  // namespace tw
