// The mutex of a shared sum is free while its ranks queue work, so none waits for another's driver.
#include "sparsify/kernels/shared_sum.h"

#include <gtest/gtest.h>

#include <future>
#include <vector>

#include "engine/core/buffer.h"
#include "tests/emulator/stream.h"

namespace tw {
namespace {

TEST(SharedSum, HoldsItsMutexWhileNoWorkIsQueued) {
  Context ctx(Device::cuda);
  const std::shared_ptr<SharedSum> shared = SharedSum::create(ctx, 2);
  const Buffer sum(Device::cuda, 16);
  const uint32_t index = 1;
  const float value = 2;
  const SparseView one{{&index, 1}, {&value, 1}};
  int queued = 0;
  bool blocked = false;
  std::vector<std::future<uint64_t>> calls;
  emulator::before_queue() = [&] {
    ++queued;
    if (blocked) return;  // one failure is enough
    // takes the mutex, on a thread of its own
    calls.push_back(std::async(std::launch::async, [&] { return shared->bytes_uploaded(); }));
    blocked = calls.back().wait_for(std::chrono::seconds(10)) != std::future_status::ready;
  };
  for (const int rank : {0, 1}) shared->run(ctx, rank, {&one, 1}, sum.as<float>());
  emulator::before_queue() = nullptr;
  EXPECT_FALSE(blocked);
  EXPECT_GE(queued, 7) << "a fill and a kernel each, the upload, events";
}

}  // namespace
}  // namespace tw
