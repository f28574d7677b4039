#include "comm/collectives/measure_link.h"

#include <algorithm>
#include <array>
#include <vector>

#include "comm/collectives/collectives.h"
#include "engine/core/buffer.h"

namespace tw {
namespace {

constexpr double kMostSeconds = 1e6;

/// Half the median seconds of `rounds` round trips; one more before them is not counted.
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

LinkCost measure_link(Context& ctx, Communicator& comm, size_t bytes, int rounds) {
  const OperationScope operation(comm, "ping-pong");
  const uint64_t before = comm.bytes_sent();
  std::array<double, 2> worst{};           // alpha and beta
  const Buffer data(ctx.device(), bytes);  // as the messages of a run
  for (int first : {0, 1}) {               // links 0-1, 2-3, ..., then 1-2, 3-4, ...
    const bool lower = comm.rank() % 2 == first;
    const int peer = comm.rank() + (lower ? 1 : -1);
    if (peer < 0 || peer >= comm.size()) continue;
    // empty messages take microseconds: more of them give a steadier median
    const double alpha = one_way(ctx, comm, peer, {}, 8 * rounds);
    const double whole = one_way(ctx, comm, peer, data.as<std::byte>(), rounds);
    if (!lower) continue;  // only the lower rank times whole round trips
    const double elements = static_cast<double>(bytes) / sizeof(float);
    worst = {std::max(worst[0], alpha), std::max(worst[1], (whole - alpha) / elements)};
  }

  LinkCost link;
  for (const auto& [alpha, beta] : gather(ctx, comm, worst)) {
    // the comparisons are false for NaN
    check<Fault>(alpha >= 0 && alpha < kMostSeconds && beta >= 0 && beta < kMostSeconds,
                 "[ping-pong] a rank measured {} s per message and {} s per element", alpha, beta);
    link.alpha = std::max(link.alpha, alpha);
    link.beta = std::max(link.beta, beta);
  }
  comm.discount(comm.bytes_sent() - before);
  return link;
}

}  // namespace tw
