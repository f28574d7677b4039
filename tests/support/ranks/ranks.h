// Test bodies on P ranks: threads of this process, or the processes of mpirun.
//
// A file *_ranks_test.cpp is linked into test_<folder>, where run_ranks starts threads, and into
// test_mpi, which ctest starts under mpirun once for each of kRankCounts. There run_ranks runs the
// body if the world has that many ranks, and returns otherwise. So loop over kRankCounts, and use
// gtest's macros inside the body, on any rank:
//
//   TEST(Foo, sums) {
//     for (int ranks : kRankCounts)
//       run_ranks(ranks, [](Context& ctx, Communicator& comm) { EXPECT_EQ(...); });
//   }
//
// Ranks under mpirun share no variables. Use EXPECT, not ASSERT: when a rank returns early, the
// others wait for it.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <exception>
#include <functional>

#include "comm/communicator_decorator.h"
#include "comm/transports.h"
#include "engine/core/context.h"

namespace tw {

/// Also the rank counts under MPI; tests/CMakeLists.txt has the same list.
inline constexpr int kRankCounts[] = {1, 2, 3, 4, 5, 7, 8, 16};

inline void run_ranks(int ranks, const std::function<void(Context&, Communicator&)>& body) {
  const testing::ScopedTrace trace(__FILE__, __LINE__, fmt::format("{} ranks", ranks));
  if (!started_by_mpi()) {
    run_on_threads(ranks, [&](Communicator& comm) {
      Context ctx;
      body(ctx, comm);
    });
    return;
  }
  const auto world = make_mpi_communicator();
  if (world->size() != ranks) return;
  try {
    Context ctx;
    body(ctx, *world);
  } catch (const std::exception& error) {
    // the other ranks wait for this one, so no further test can run
    fmt::print(stderr, "rank {}: {}\n", world->rank(), error.what());
    world->abort(error.what());
  }
}

/// Ranks that run on `machines` machines in turn.
class OnMachines : public CommunicatorDecorator {
 public:
  OnMachines(Communicator& inner, int machines)
      : CommunicatorDecorator(inner), machines_(machines) {}
  HostId machine() const override {
    HostId id{};
    id[0] = static_cast<char>('a' + rank() % machines_);
    return id;
  }

 protected:
  size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) override {
    return inner_.exchange(ctx, to, out, from, in);
  }

 private:
  int machines_;
};

/// The sum of the values of all ranks, by point-to-point messages.
inline uint64_t sum_over_ranks(Context& ctx, Communicator& comm, uint64_t value) {
  const int ranks = comm.size(), right = (comm.rank() + 1) % ranks;
  const int left = (comm.rank() + ranks - 1) % ranks;
  uint64_t sum = value, passing = value;
  for (int step = 1; step < ranks; ++step) {
    uint64_t incoming = 0;
    comm.exchange(ctx, right, std::as_bytes(std::span(&passing, 1)), left,
                  std::as_writable_bytes(std::span(&incoming, 1)));
    sum += passing = incoming;
  }
  return sum;
}

/// Whether `value` is true on all ranks, by point-to-point messages.
inline bool all_ranks(Context& ctx, Communicator& comm, bool value) {
  return sum_over_ranks(ctx, comm, value ? 1 : 0) == static_cast<uint64_t>(comm.size());
}

/// Bytes and messages sent since construction, summed over the ranks.
class MessageCounter {
 public:
  explicit MessageCounter(const Communicator& comm)
      : bytes_(comm.bytes_sent()), messages_(comm.messages_sent()) {}
  struct Sums {
    uint64_t bytes, messages;
  };
  Sums sums(Context& ctx, Communicator& comm) const {
    const uint64_t bytes = comm.bytes_sent() - bytes_;
    const uint64_t messages = comm.messages_sent() - messages_;
    return {sum_over_ranks(ctx, comm, bytes), sum_over_ranks(ctx, comm, messages)};
  }

 private:
  uint64_t bytes_, messages_;
};

}  // namespace tw
