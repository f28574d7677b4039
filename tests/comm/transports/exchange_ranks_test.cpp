// Guarantees of every transport about single messages.

#include <array>
#include <chrono>
#include <thread>

#include "comm/collectives/collectives.h"
#include "tests/support/ranks/message_pattern.h"
#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

TEST(Exchange, MessagesOfAnySizeArriveAroundARing) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      if (comm.size() == 1) return;
      // from nothing to beyond every eager limit
      constexpr size_t sizes[] = {0, 1, 13, 4096, 70000, 1 << 20, 3};
      swap_around(ctx, comm, sizes);
    });
}

TEST(Exchange, MessagesOfOneSenderStayInOrder) {
  for (int ranks : {2, 4})
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      for (int i = 0; i < 200; ++i) {
        int value = i;
        if (comm.rank() == 0) {
          for (int to = 1; to < comm.size(); ++to)
            comm.send(ctx, to, std::as_bytes(std::span(&value, 1)).first(i % 5 == 0 ? 0 : 4));
        } else {
          value = -1;
          const size_t bytes = comm.receive(ctx, 0, std::as_writable_bytes(std::span(&value, 1)));
          EXPECT_EQ(bytes, i % 5 == 0 ? 0u : 4u);
          EXPECT_EQ(value, i % 5 == 0 ? -1 : i);
        }
      }
    });
}

TEST(Exchange, CountsBytesAndMessagesSent) {
  for (int ranks : {2, 3})
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      const uint64_t bytes = comm.bytes_sent(), messages = comm.messages_sent();
      std::vector<std::byte> data(100);
      if (comm.rank() == 0) {
        comm.send(ctx, 1, data);
        comm.send(ctx, 1, {});
      } else if (comm.rank() == 1) {
        comm.receive(ctx, 0, data);
        comm.receive(ctx, 0, data);
      }
      EXPECT_EQ(comm.bytes_sent() - bytes, comm.rank() == 0 ? 100u : 0u);
      EXPECT_EQ(comm.messages_sent() - messages, comm.rank() == 0 ? 2u : 0u);
    });
}

TEST(Exchange, MessageTooLongForTheReceiverIsAFault) {
  if (started_by_mpi()) GTEST_SKIP() << "ends the run";
  EXPECT_THROW(run_ranks(2,
                         [](Context& ctx, Communicator& comm) {
                           std::vector<std::byte> data(comm.rank() == 0 ? 100 : 99);
                           if (comm.rank() == 0) comm.send(ctx, 1, data);
                           if (comm.rank() == 1) comm.receive(ctx, 0, data);
                         }),
               Fault);
}

TEST(Exchange, RankOutsideTheRunIsAFault) {
  for (int ranks : {1, 2})
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      EXPECT_THROW(comm.send(ctx, comm.size(), {}), Fault);
      EXPECT_THROW(comm.send(ctx, comm.rank(), {}), Fault);
      EXPECT_THROW(comm.receive(ctx, comm.size(), {}), Fault);
    });
}

TEST(Barrier, NoRankLeavesBeforeTheLastArrives) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context& ctx, Communicator& comm) {
      // one clock for all processes of a machine
      const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
      for (int late = 0; late < comm.size(); ++late) {
        if (comm.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        const MessageCounter traffic(comm);
        std::array<int64_t, 2> times{now(), 0};
        barrier(ctx, comm);
        times[1] = now();
        int rounds = 0;
        while ((1 << rounds) < comm.size()) ++rounds;
        const auto sums = traffic.sums(ctx, comm);
        EXPECT_EQ(sums.bytes, 0u);
        EXPECT_EQ(sums.messages, static_cast<uint64_t>(comm.size() * rounds));

        GatheredBlocks blocks;
        allgather(ctx, comm, std::as_bytes(std::span(times)), sizeof(times), blocks);
        for (int rank = 0; rank < comm.size(); ++rank) {
          int64_t arrived = 0;
          std::memcpy(&arrived, blocks[rank].data(), sizeof(arrived));
          EXPECT_GE(times[1], arrived);
        }
      }
    });
}

}  // namespace
}  // namespace tw
