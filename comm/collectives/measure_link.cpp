#include "comm/collectives/measure_link.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "comm/collectives/collectives.h"
#include "engine/core/buffer.h"

namespace tw {
namespace {

/// Median seconds of one way of `rounds` round trips, after one that does not count.
double one_way(Context& ctx, Communicator& comm, int peer, Bytes data, int rounds) {
  std::vector<double> seconds;
  for (int round = -1; round < rounds; ++round) {
    const double start = comm.now();
    if (comm.rank() < peer) {
      comm.send(ctx, peer, data);
      comm.receive(ctx, peer, data);
    } else {
      comm.receive(ctx, peer, data);
      comm.send(ctx, peer, data);
    }
    if (round >= 0) seconds.push_back((comm.now() - start) / 2);
  }
  const auto middle = seconds.begin() + rounds / 2;
  std::ranges::nth_element(seconds, middle);
  return *middle;
}

}  // namespace

LinkCost measure_wire(Context& ctx, Communicator& comm, size_t bytes, int rounds) {
  const OperationScope doing(comm, "ping-pong");
  struct {
    double alpha = 0, beta = 0;
  } worst;
  const Buffer data(ctx.device(), bytes);  // what travels in a run lies there, too
  for (int first : {0, 1}) {               // links 0-1, 2-3, ..., then 1-2, 3-4, ...
    const bool lower = comm.rank() % 2 == first;
    const int peer = comm.rank() + (lower ? 1 : -1);
    if (peer < 0 || peer >= comm.size()) continue;
    // an empty message is over in microseconds: more of them, for a steadier median
    const double alpha = one_way(ctx, comm, peer, {}, 8 * rounds);
    const double whole = one_way(ctx, comm, peer, data.as<std::byte>(), rounds);
    if (!lower) continue;  // the upper rank's clock starts while the first message is on its way
    const double elements = static_cast<double>(bytes) / sizeof(float);
    worst.alpha = std::max(worst.alpha, alpha);
    worst.beta = std::max(worst.beta, (whole - alpha) / elements);
  }

  GatheredBlocks blocks;
  allgather(ctx, comm, std::as_bytes(std::span(&worst, 1)), sizeof worst, blocks);
  LinkCost wire;
  for (int rank = 0; rank < comm.size(); ++rank) {
    std::memcpy(&worst, blocks[rank].data(), sizeof worst);
    wire.alpha = std::max(wire.alpha, worst.alpha);
    wire.beta = std::max(wire.beta, worst.beta);
  }
  return wire;
}

}  // namespace tw
