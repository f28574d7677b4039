// Emulated links take the time of the model with one port per node.

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "comm/collectives/collectives.h"
#include "comm/cost_model.h"
#include "comm/link/link.h"
#include "tests/support/ranks/collectives.h"
#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

constexpr PortSpec kLink{.latency = 1e-3, .bits_per_second = 8e6};  // a microsecond a byte

/// The maximum over all ranks.
double max_over_ranks(Context& ctx, Communicator& comm, double value) {
  GatheredBlocks blocks;
  allgather(ctx, comm, std::as_bytes(std::span(&value, 1)), sizeof value, blocks);
  for (int rank = 0; rank < comm.size(); ++rank) {
    double one = 0;
    std::memcpy(&one, blocks[rank].data(), sizeof one);
    value = std::max(value, one);
  }
  return value;
}

using Body = std::function<void(Context&, LinkCommunicator&)>;

/// Simulated time at which the last rank ends its `body`; the same on all ranks.
double simulated(Context& ctx, Communicator& comm, const Topology& link, const Body& body) {
  LinkCommunicator linked(ctx, comm, link, LinkTime::simulated);
  body(ctx, linked);
  return max_over_ranks(ctx, comm, linked.now());
}

TEST(Link, AMessageTakesLatencyPlusLengthOverRate) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    for (size_t bytes : {0, 1, 1000, 123456}) {
      LinkCommunicator linked(ctx, comm, {.usual = kLink}, LinkTime::simulated);
      std::vector<std::byte> data(bytes);
      comm.rank() == 0 ? linked.send(ctx, 1, data)
                       : static_cast<void>(linked.receive(ctx, 0, data));
      EXPECT_NEAR(linked.now(), 1e-3 + 1e-6 * static_cast<double>(bytes), 1e-12);
      EXPECT_EQ(linked.bytes_sent(), comm.rank() == 0 ? bytes : 0);
      EXPECT_EQ(linked.messages_sent(), comm.rank() == 0 ? 1 : 0);
    }
  });
}

TEST(Link, MessagesQueueAtTheSendersPort) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    LinkCommunicator linked(ctx, comm, {.usual = kLink}, LinkTime::simulated);
    std::vector<std::byte> data(1000);
    if (comm.rank() == 0) {
      linked.send(ctx, 1, data);
      linked.send(ctx, 2, data);
    } else {
      linked.receive(ctx, 0, data);
    }
    const double expected[] = {4e-3, 2e-3, 4e-3};
    EXPECT_NEAR(linked.now(), expected[comm.rank()], 1e-12);
  });
}

TEST(Link, MessagesQueueAtTheReceiversPort) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    LinkCommunicator linked(ctx, comm, {.usual = kLink}, LinkTime::simulated);
    std::vector<std::byte> data(1000);
    if (comm.rank() > 0) {
      linked.send(ctx, 0, data);
      EXPECT_NEAR(linked.now(), 2e-3, 1e-12);
      return;
    }
    linked.receive(ctx, 1, data);
    EXPECT_NEAR(linked.now(), 2e-3, 1e-12);
    linked.receive(ctx, 2, data);
    EXPECT_NEAR(linked.now(), 4e-3, 1e-12);
  });
}

TEST(Link, SendingAndReceivingOverlap) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    LinkCommunicator linked(ctx, comm, {.usual = kLink}, LinkTime::simulated);
    std::vector<std::byte> out(5000), in(5000);
    const int peer = 1 - comm.rank();
    linked.exchange(ctx, peer, out, peer, in);
    EXPECT_NEAR(linked.now(), 6e-3, 1e-12);
  });
}

TEST(Link, ReceiveReturnsAtArrivalOrAtTheCallIfLater) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    for (const double seconds : {0.5e-3, 10e-3}) {
      LinkCommunicator linked(ctx, comm, {.usual = kLink}, LinkTime::simulated);
      std::vector<std::byte> data(1000);
      if (comm.rank() == 0) linked.send(ctx, 1, data);
      if (comm.rank() == 1) {
        linked.advance(seconds);
        linked.receive(ctx, 0, data);
        EXPECT_NEAR(linked.now(), std::max(seconds, 2e-3), 1e-12);
      }
    }
  });
}

TEST(Link, RingTakesTheTimeOfTheModel) {
  const LinkCost link_cost{.alpha = kLink.latency, .beta = kLink.seconds(4) - kLink.latency};
  constexpr size_t n = 16 * 1000;
  for (int ranks : kRankCounts)
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      const double seconds =
          simulated(ctx, comm, {.usual = kLink}, [&](Context&, LinkCommunicator& linked) {
            std::vector<float> data = whole_numbers(comm.rank(), n), scratch(n);
            allreduces().find("ring").value(known_link())(ctx, linked, data, scratch);
            EXPECT_EQ(wrong_sums(data, ranks), 0u);
          });
      const double expected = allreduces().find("ring").value.seconds(link_cost, ranks, n);
      EXPECT_NEAR(seconds, expected, 0.01 * expected);
    });
}

TEST(Link, TreeTakesTheTimeOfTheModel) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      const double seconds =
          simulated(ctx, comm, {.usual = kLink}, [&](Context&, LinkCommunicator& linked) {
            std::vector<std::byte> data(3000);
            broadcast(ctx, linked, 0, data);
          });
      EXPECT_NEAR(seconds, std::ceil(std::log2(ranks)) * 4e-3, 1e-12);
    });
}

TEST(Link, SimulatedTimesAreRepeatable) {
  for (int ranks : {3, 8})
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      for (const auto& [name, entry] : allreduces().entries()) {
        if (name == "vendor") continue;
        const Allreduce allreduce = entry.value(known_link());
        std::vector<float> data(1001), scratch(1001);
        const auto once = [&](Context&, LinkCommunicator& linked) {
          allreduce(ctx, linked, data, scratch);
        };
        const double first = simulated(ctx, comm, {.usual = kLink}, once);
        for (int round = 0; round < 5; ++round)
          EXPECT_EQ(simulated(ctx, comm, {.usual = kLink}, once), first) << name;
      }
    });
}

TEST(Link, KeepsTheBitsOfAllreduces) {
  const Topology fast{.usual = {.latency = 1e-5, .bits_per_second = 1e11}};
  for (int ranks : {2, 5})
    run_ranks(ranks, [&](Context& ctx, Communicator& comm) {
      for (const auto& [name, entry] : allreduces().entries()) {
        if (name == "vendor") continue;
        const Allreduce allreduce = entry.value(known_link());
        std::vector<float> plain = rough_numbers(comm.rank(), 4097), linked = plain, scratch(4097);
        allreduce(ctx, comm, plain, scratch);
        for (const LinkTime time : {LinkTime::real, LinkTime::simulated}) {
          linked = rough_numbers(comm.rank(), 4097);
          LinkCommunicator over(ctx, comm, fast, time);
          allreduce(ctx, over, linked, scratch);
          EXPECT_EQ(linked, plain) << name;
        }
      }
    });
}

// ranks 0 and 1 on one node, 2 and 3 on the other
TEST(Link, RanksOfANodeShareItsPorts) {
  const Topology link{.usual = kLink, .ranks_per_node = 2};
  run_ranks(4, [&](Context& ctx, Communicator& comm) {
    const int rank = comm.rank();
    std::vector<std::byte> data(1000), in(1000);
    const double inside = simulated(ctx, comm, link, [&](Context&, LinkCommunicator& linked) {
      linked.exchange(ctx, rank ^ 1, data, rank ^ 1, in);
    });
    EXPECT_EQ(inside, 0);
    const double between = simulated(ctx, comm, link, [&](Context&, LinkCommunicator& linked) {
      linked.exchange(ctx, rank ^ 2, data, rank ^ 2, in);
    });
    EXPECT_NEAR(between, 4e-3, 1e-12);  // two messages through each port
    const double through = simulated(ctx, comm, link, [&](Context&, LinkCommunicator& linked) {
      // a free message carries its sender's time: 1 -> 0 waits for 2 -> 1
      if (rank == 2) linked.send(ctx, 1, data);
      if (rank == 1) linked.receive(ctx, 2, in);
      if (rank == 1) linked.send(ctx, 0, data);
      if (rank == 0) {
        linked.receive(ctx, 1, in);
        EXPECT_NEAR(linked.now(), 2e-3, 1e-12);
      }
    });
    EXPECT_NEAR(through, 2e-3, 1e-12);
  });
}

TEST(Link, TheLastNodeMayBeSmaller) {
  const Topology link{.usual = kLink, .ranks_per_node = 2};
  run_ranks(5, [&](Context& ctx, Communicator& comm) {
    LinkCommunicator linked(ctx, comm, link, LinkTime::simulated);
    barrier(ctx, linked);
    EXPECT_GE(linked.now(), 1e-3);
  });
}

// a microsecond a byte; node 1 sends ten times as slowly and receives four times as slowly
Topology with_a_slow_node() {
  Topology topology{.usual = kLink};
  topology.nodes[1] = {.out = {.latency = 1e-3, .bits_per_second = 8e5},
                       .in = {.latency = 1e-3, .bits_per_second = 2e6}};
  return topology;
}

TEST(UnequalLinks, AMessageTakesTheTimeOfTheSlowerPort) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    std::vector<std::byte> data(1000), in(1000);
    const auto seconds = [&](int from, int to) {
      return simulated(ctx, comm, with_a_slow_node(), [&](Context&, LinkCommunicator& linked) {
        if (comm.rank() == from) linked.send(ctx, to, data);
        if (comm.rank() == to) linked.receive(ctx, from, in);
      });
    };
    EXPECT_NEAR(seconds(0, 2), 2e-3, 1e-12);
    EXPECT_NEAR(seconds(0, 1), 5e-3, 1e-12);
    EXPECT_NEAR(seconds(1, 0), 11e-3, 1e-12);
  });
}

TEST(UnequalLinks, APairHasAWayOfItsOwnInOneDirection) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    Topology topology{.usual = kLink};
    topology.pairs[{0, 1}] = {.latency = 50e-3, .bits_per_second = 8e6};
    std::vector<std::byte> data(1000), in(1000);
    LinkCommunicator linked(ctx, comm, topology, LinkTime::simulated);
    const int other = 1 - comm.rank();
    linked.exchange(ctx, other, data, other, in);
    EXPECT_NEAR(linked.now(), comm.rank() == 0 ? 2e-3 : 51e-3, 1e-12);
  });
}

// nodes 0 and 1 share an uplink of half a port's rate, and 2 and 3 another
TEST(UnequalLinks, MessagesBetweenRacksQueueAtTheUplinks) {
  Topology topology{.usual = kLink};
  const PortSpec uplink{.latency = 0, .bits_per_second = 4e6}, fast{.bits_per_second = 4e9};
  // uplinks that are slow in one direction alone give the same
  for (const auto& [sends, takes] :
       {std::pair{uplink, uplink}, std::pair{uplink, fast}, std::pair{fast, uplink}}) {
    topology.racks = {{.out = sends, .in = takes, .first = 0, .last = 1},
                      {.out = sends, .in = takes, .first = 2, .last = 3}};
    run_ranks(4, [&](Context& ctx, Communicator& comm) {
      std::vector<std::byte> data(1000), in(1000);
      const auto exchange = [&](int mask) {
        return simulated(ctx, comm, topology, [&](Context&, LinkCommunicator& linked) {
          linked.exchange(ctx, comm.rank() ^ mask, data, comm.rank() ^ mask, in);
        });
      };
      EXPECT_NEAR(exchange(1), 2e-3, 1e-12);
      // two messages of 2 ms each pass each uplink; the port of the second begins with it
      EXPECT_NEAR(exchange(2), 4e-3, sends.bits_per_second == takes.bits_per_second ? 1e-12 : 4e-6);
    });
  }
}

TEST(UnequalLinks, NoMessagePassesAPortInAnOutage) {
  Topology topology{.usual = kLink};
  topology.outages = {{.node = 1, .begin = 3e-3, .end = 0.5}};
  run_ranks(2, [&](Context& ctx, Communicator& comm) {
    LinkCommunicator linked(ctx, comm, topology, LinkTime::simulated);
    std::vector<std::byte> data(1000);
    for (const double arrival : {2e-3, 0.502}) {  // the first ends before
      comm.rank() == 0 ? linked.send(ctx, 1, data)
                       : static_cast<void>(linked.receive(ctx, 0, data));
      if (comm.rank() == 1) {
        EXPECT_NEAR(linked.now(), arrival, 1e-12);
      }
    }
  });
}

TEST(UnequalLinks, DelaysHaveTheirMeanAndDependOnTheSeed) {
  run_ranks(2, [](Context& ctx, Communicator& comm) {
    const auto total = [&](uint64_t seed) {
      const Topology topology{.usual = kLink, .jitter = 1e-3, .seed = seed};
      return simulated(ctx, comm, topology, [&](Context&, LinkCommunicator& linked) {
        for (int i = 0; i < 2000; ++i) {
          if (comm.rank() == 0) linked.send(ctx, 1, {});
          if (comm.rank() == 1) linked.receive(ctx, 0, {});
          if (comm.rank() == 1) linked.send(ctx, 0, {});
          if (comm.rank() == 0) linked.receive(ctx, 1, {});
        }
      });
    };
    // 4,000 messages of 1 ms and a delay with mean and deviation of 1 ms; five standard errors
    EXPECT_NEAR(total(1), 8.0, 5 * 1e-3 * std::sqrt(4000.0));
    EXPECT_EQ(total(1), total(1));
    EXPECT_NE(total(1), total(2));
  });
}

TEST(UnequalLinks, SlowRanksComputeLonger) {
  Topology topology{.usual = kLink};
  topology.slow[1] = 1.5;
  run_ranks(3, [&](Context& ctx, Communicator& comm) {
    LinkCommunicator linked(ctx, comm, topology, LinkTime::simulated);
    linked.computed(2, 0);
    EXPECT_DOUBLE_EQ(linked.now(), comm.rank() == 1 ? 1 : 0);
  });
}

TEST(Link, RealTimeFollowsTheModel) {
  const Topology link{.usual = {.latency = 2e-3, .bits_per_second = 32e6}};
  const LinkCost link_cost{.alpha = 2e-3, .beta = 1e-6};
  constexpr size_t n = 80000;
  run_ranks(4, [&](Context& ctx, Communicator& comm) {
    LinkCommunicator linked(ctx, comm, link);
    std::vector<float> data = whole_numbers(comm.rank(), n), scratch(n);
    const Allreduce ring = allreduces().find("ring").value(known_link());
    const double expected = allreduces().find("ring").value.seconds(link_cost, 4, n);
    // repeats, because the machine may be busy for a moment
    double seconds = 1e9;
    for (int round = 0; round < 100 && seconds > 1.1 * expected; ++round) {
      barrier(ctx, linked);
      const double start = linked.now();
      ring(ctx, linked, data, scratch);
      seconds = std::min(seconds, max_over_ranks(ctx, comm, linked.now() - start));
    }
    EXPECT_NEAR(seconds, expected, 0.1 * expected);
  });
}

}  // namespace
}  // namespace tw
