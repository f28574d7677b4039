// Ranks as threads: when one fails, no other waits forever.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "comm/collectives/collectives.h"
#include "comm/transports.h"

namespace tw {
namespace {

template <class E>
std::string message_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Threads, ErrorOfOneRankWakesTheOthersAndIsRethrown) {
  for (int culprit = 0; culprit < 4; ++culprit) {
    std::atomic<int> woken = 0;
    const auto text = message_of<UserError>([&] {
      run_on_threads(4, [&](Communicator& comm) {
        Context ctx;
        if (comm.rank() == culprit) {
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          throw UserError("[test] no such file");
        }
        try {
          for (;;) barrier(ctx, comm);
        } catch (const Fault& fault) {
          const auto expected = fmt::format("rank {} failed: [test] no such file", culprit);
          EXPECT_NE(std::string(fault.what()).find(expected), std::string::npos) << fault.what();
          ++woken;
          throw;
        }
      });
    });
    EXPECT_EQ(text, "[test] no such file");
    EXPECT_EQ(woken, 3);
  }
}

TEST(Threads, AbortWakesTheOthers) {
  const auto text = message_of<Fault>([] {
    run_on_threads(3, [](Communicator& comm) {
      Context ctx;
      if (comm.rank() == 2) return comm.abort("disk full");
      comm.receive(ctx, 2, {});
    });
  });
  EXPECT_EQ(text, "[threads] rank 2 failed: disk full");
}

TEST(Threads, WaitingForARankThatEndedIsAFault) {
  const auto receiving = message_of<Fault>([] {
    run_on_threads(2, [](Communicator& comm) {
      Context ctx;
      if (comm.rank() == 1) comm.receive(ctx, 0, {});
    });
  });
  EXPECT_EQ(receiving, "[threads] rank 0 has already ended");
  const auto sending = message_of<Fault>([] {
    run_on_threads(2, [](Communicator& comm) {
      Context ctx;
      if (comm.rank() == 1) comm.send(ctx, 0, {});
    });
  });
  EXPECT_EQ(sending, "[threads] rank 0 has already ended");
}

// a sender that wakes while its message is being copied may not write to it yet
TEST(Threads, WokenSenderWaitsUntilItsMessageIsCopied) {
  constexpr size_t bytes = 16 << 20;
  constexpr std::byte sent{1}, scribbled{2};
  for (int round = 0; round < 20; ++round) {
    const auto body = [&](Communicator& comm) {
      Context ctx;
      std::vector<std::byte> data(bytes, comm.rank() == 0 ? sent : std::byte{0});
      barrier(ctx, comm);
      if (comm.rank() == 2) {
        std::this_thread::sleep_for(std::chrono::microseconds(200 * round));
        throw Fault("[test] stop");
      }
      if (comm.rank() == 1) {
        comm.receive(ctx, 0, data);
        EXPECT_EQ(std::ranges::count(data, sent), static_cast<ptrdiff_t>(bytes));
        return;
      }
      try {
        comm.send(ctx, 1, data);
      } catch (const Fault&) {
        std::ranges::fill(data, scribbled);
        throw;
      }
    };
    EXPECT_THROW(run_on_threads(3, body), Fault);
  }
}

TEST(Threads, UnknownExceptionsAreRethrown) {
  EXPECT_THROW(run_on_threads(2,
                              [](Communicator& comm) {
                                Context ctx;
                                if (comm.rank() == 0) throw 7;
                                barrier(ctx, comm);
                              }),
               int);
}

TEST(Threads, ZeroRanksAreAUserError) {
  EXPECT_THROW(run_on_threads(0, [](Communicator&) {}), UserError);
}

TEST(Threads, WaitingCostsNoProcessorTime) {
  run_on_threads(2, [](Communicator& comm) {
    Context ctx;
    const auto processor_seconds = [] {
      timespec now{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
      return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
    };
    if (comm.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const double before = processor_seconds();
    barrier(ctx, comm);
    EXPECT_LT(processor_seconds() - before, 0.02);
  });
}

TEST(Threads, PeerAbortIsReported) {
  std::string heard;
  EXPECT_THROW(run_on_threads(3,
                              [&](Communicator& comm) {
                                if (comm.rank() == 1) fail<Fault>("[test] enough");
                                // ranks 0 and 2 poll until the failure is reported
                                try {
                                  while (true) {
                                    comm.check_peers();
                                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                  }
                                } catch (const Fault& fault) {
                                  if (comm.rank() == 0) heard = fault.what();
                                  throw;
                                }
                              }),
               Fault);
  EXPECT_EQ(heard, "[threads] rank 1 failed: [test] enough");
}

TEST(Mpi, MissingTransportIsReported) {
  const Registry<Transport> none("transport");
  const auto text = message_of<UserError>([&] { mpi_among(none); });
  EXPECT_NE(text.find("built without MPI"), std::string::npos) << text;
}

TEST(Mpi, FinishReturnsTheCodeWhenMpiWasNeverInitialised) { EXPECT_EQ(finish_mpi(2), 2); }

TEST(Self, OneRankKeepsItsDataInAllCollectives) {
  const auto comm = make_self_communicator();
  Context ctx;
  EXPECT_EQ(comm->size(), 1);
  std::vector<float> data{1, 2, 3}, scratch(3);
  allreduces().find("ring").value({})(ctx, *comm, data, scratch);
  EXPECT_EQ(data, (std::vector<float>{1, 2, 3}));
  broadcast(ctx, *comm, 0, std::as_writable_bytes(std::span(data)));
  barrier(ctx, *comm);
  GatheredBlocks blocks;
  allgather(ctx, *comm, std::as_bytes(std::span(data)), 12, blocks);
  EXPECT_TRUE(std::ranges::equal(blocks[0], std::as_bytes(std::span(data))));
  EXPECT_EQ(comm->messages_sent(), 0u);
}

}  // namespace
}  // namespace tw
