// A missing rank: the others wait until the timeout and report the rank they wait for.

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "comm/collectives/collectives.h"
#include "comm/link/link.h"
#include "comm/transports.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks/collectives.h"

namespace tw {
namespace {

using namespace std::chrono_literals;
using test::error_text;
using Body = std::function<void(Context&, Communicator&)>;

constexpr size_t kFloats = 1000;

void ring_of(Context& ctx, Communicator& comm) {
  std::vector<float> data(kFloats), scratch(kFloats);
  allreduces().find("ring").value(known_link())(ctx, comm, data, scratch);
}

/// The error of the first rank that times out when rank `missing` does not answer.
std::string said(int ranks, int missing, const Body& body) {
  return error_text<TimeoutError>([&] {
    run_on_threads(ranks, [&](Communicator& comm) {
      Context ctx;
      comm.set_timeout(0.1);
      if (comm.rank() == missing)
        std::this_thread::sleep_for(300ms);
      else
        body(ctx, comm);
    });
  });
}

template <class Entries, class Call>
void expect_each_named(const Entries& registry, const Call& call) {
  for (const auto& [name, entry] : registry.entries()) {
    if (name == "vendor") continue;
    const auto collective = entry.value(known_link());
    const std::string text = said(2, 1, [&](Context& ctx, Communicator& comm) {
      std::vector<float> data(kFloats), scratch(kFloats);
      call(collective, ctx, comm, std::span(data), std::span(scratch));
    });
    const bool plain =
        registry.kind() == "broadcast" && name == "binomial_tree";  // its scope is called broadcast
    EXPECT_EQ(text, fmt::format("[{}] rank 0 has waited 0.1 s for rank 1",
                                plain ? "broadcast" : name.c_str()));
  }
}

TEST(Timeout, EveryCollectiveNamesItselfAndTheMissingRank) {
  using Data = std::span<float>;
  for (int root : {0, 1}) {
    expect_each_named(broadcasts(),
                      [&](const Broadcast& f, Context& ctx, Communicator& comm, Data data, Data) {
                        f(ctx, comm, root, std::as_writable_bytes(data));
                      });
    expect_each_named(reduces(), [&](const Reduce& f, Context& ctx, Communicator& comm, Data data,
                                     Data scratch) { f(ctx, comm, root, data, scratch); });
  }
  expect_each_named(allreduces(), [&](const Allreduce& f, Context& ctx, Communicator& comm,
                                      Data data, Data scratch) { f(ctx, comm, data, scratch); });
  EXPECT_EQ(said(2, 1, [](Context& ctx, Communicator& comm) { barrier(ctx, comm); }),
            "[barrier] rank 0 has waited 0.1 s for rank 1");
  EXPECT_EQ(said(2, 1,
                 [](Context& ctx, Communicator& comm) {
                   GatheredBlocks blocks;
                   allgather(ctx, comm, {}, 0, blocks);
                 }),
            "[allgather] rank 0 has waited 0.1 s for rank 1");
}

TEST(Timeout, NestedOperationsAreAllNamed) {
  EXPECT_EQ(said(2, 1,
                 [](Context& ctx, Communicator& comm) {
                   const OperationScope exchange(comm, "gtopk");
                   { const OperationScope over(comm, "tree"); }
                   broadcast(ctx, comm, 0, {});
                 }),
            "[gtopk/broadcast] rank 0 has waited 0.1 s for rank 1");
  EXPECT_EQ(said(2, 1, [](Context& ctx, Communicator& comm) { comm.receive(ctx, 1, {}); }),
            "[comm] rank 0 has waited 0.1 s for rank 1");
}

TEST(Timeout, AppliesOverAnEmulatedLink) {
  const auto body = [](Communicator& comm) {
    Context ctx;
    LinkCommunicator linked(ctx, comm, parse_link("1Gbit,10us"));
    linked.set_timeout(0.1);
    if (comm.rank() == 1) std::this_thread::sleep_for(300ms);
    if (comm.rank() == 0) ring_of(ctx, linked);
  };
  EXPECT_EQ(error_text<TimeoutError>([&] { run_on_threads(2, body); }),
            "[ring] rank 0 has waited 0.1 s for rank 1");
}

TEST(Timeout, AllRanksStopInTime) {
  // repeats, because the machine may be busy for a moment
  auto least = std::chrono::steady_clock::duration::max();
  for (int round = 0; round < 3 && least >= 10s; ++round) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_NE(said(8, 5, [](Context& ctx, Communicator& comm) { ring_of(ctx, comm); }), "");
    least = std::min(least, std::chrono::steady_clock::now() - start);
  }
  EXPECT_LT(least, 10s);
}

TEST(Timeout, IsUnlimitedByDefault) {
  run_on_threads(2, [](Communicator& comm) {
    Context ctx;
    EXPECT_EQ(comm.timeout(), 0);
    if (comm.rank() == 1) std::this_thread::sleep_for(200ms);
    barrier(ctx, comm);
  });
}

/// Stops this process for three seconds.
void pause_process() {
  const pid_t self = ::getpid();
  if (::fork() == 0) {
    ::sleep(3);
    ::kill(self, SIGCONT);
    ::_exit(0);
  }
  ::raise(SIGSTOP);
}

/// The exit code of a process that is stopped while rank 0 waits for rank 1.
int code_of_paused_ranks() {
  try {
    run_on_threads(2, [](Communicator& comm) {
      Context ctx;
      comm.set_timeout(2);
      if (comm.rank() == 1) {
        std::this_thread::sleep_for(300ms);
        pause_process();
        for (int part = 0; part < 5; ++part) std::this_thread::sleep_for(100ms);
      }
      barrier(ctx, comm);
    });
  } catch (const TimeoutError&) {
    return 1;
  }
  return 0;
}

TEST(Timeout, DoesNotCountTimeInWhichTheProcessIsStopped) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EXIT(::_exit(code_of_paused_ranks()), testing::ExitedWithCode(0), "");
  EXPECT_GT(std::chrono::steady_clock::now() - start, 3s);
}

TEST(Timeout, WaitsBelowTheLimitDoNotAddUp) {
  const auto in_time = [] {
    try {
      run_on_threads(2, [](Communicator& comm) {
        Context ctx;
        comm.set_timeout(1);
        for (int round = 0; round < 4; ++round) {
          if (comm.rank() == 1) std::this_thread::sleep_for(300ms);
          barrier(ctx, comm);
        }
      });
    } catch (const TimeoutError&) {
      return false;
    }
    return true;
  };
  // repeats, because the machine may be busy for a moment
  bool ended = false;
  for (int round = 0; round < 10 && !ended; ++round) ended = in_time();
  EXPECT_TRUE(ended);
}

// a thread that never returns cannot be stopped, so the process exits
TEST(TimeoutDeathTest, AHangingThreadEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_on_threads(2,
                             [](Communicator& comm) {
                               Context ctx;
                               comm.set_timeout(0.1);
                               while (comm.rank() == 1) ::pause();
                               barrier(ctx, comm);
                             }),
              testing::ExitedWithCode(1), "error: .barrier. rank 0 has waited 0.1 s for rank 1\n");
}

}  // namespace
}  // namespace tw
