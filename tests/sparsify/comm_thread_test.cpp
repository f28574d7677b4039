#include "sparsify/comm_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace tw {
namespace {

TEST(CommThread, RunsTheJobsOfARoundInOrder) {
  std::vector<size_t> done;
  std::thread::id prepared, worked;
  {
    CommThread thread([&] { prepared = std::this_thread::get_id(); },
                      [&](size_t i) {
                        worked = std::this_thread::get_id();
                        done.push_back(i);
                      });
    for (int round = 0; round < 50; ++round) {
      done.clear();
      thread.start();
      for (size_t ready : {1u, 2u, 5u}) thread.release(ready);
      thread.wait();
      EXPECT_EQ(done, (std::vector<size_t>{0, 1, 2, 3, 4}));
    }
  }
  EXPECT_EQ(prepared, worked);
  EXPECT_NE(worked, std::this_thread::get_id());
}

TEST(CommThread, RunsInParallelWithItsOwner) {
  std::atomic<bool> first_done = false;
  CommThread thread([] {}, [&](size_t i) { first_done = i == 0; });
  thread.start();
  thread.release(1);
  while (!first_done) std::this_thread::yield();  // without a wait()
  thread.wait();
}

TEST(CommThread, RethrowsTheErrorOfAJobAndSkipsLaterJobs) {
  std::atomic<size_t> jobs = 0;
  CommThread thread([] {},
                    [&](size_t i) {
                      ++jobs;
                      if (i == 1) throw std::runtime_error("job 1");
                    });
  thread.start();
  thread.release(4);
  EXPECT_THROW(thread.wait(), std::runtime_error);
  EXPECT_EQ(jobs, 2u);
}

TEST(CommThread, EndsWithUnreleasedJobs) {
  CommThread thread([] {}, [](size_t) {});
  thread.start();
}

}  // namespace
}  // namespace tw
