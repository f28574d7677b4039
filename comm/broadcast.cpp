// Binomial tree: seen from the root, rank v receives from v without its highest bit, then sends to
// v + 2^j for every higher bit j, far ones last. ceil(log2 P) messages deep, P-1 messages of n
// bytes in all.

#include "comm/collectives.h"

namespace tw {

void broadcast(Context& ctx, Communicator& comm, int root, Bytes data) {
  const int ranks = comm.size();
  const int from_root = (comm.rank() - root + ranks) % ranks;
  const auto rank_at = [&](int v) { return (v + root) % ranks; };
  for (int distance = 1; distance < ranks; distance *= 2) {
    if (from_root < distance) {
      if (from_root + distance < ranks) comm.send(ctx, rank_at(from_root + distance), data);
    } else if (from_root < 2 * distance) {
      const size_t received = comm.receive(ctx, rank_at(from_root - distance), data);
      check<Fault>(received == data.size(),
                   "[broadcast] rank {} sent {} bytes, rank {} expected {}",
                   rank_at(from_root - distance), received, comm.rank(), data.size());
    }
  }
}

}  // namespace tw
