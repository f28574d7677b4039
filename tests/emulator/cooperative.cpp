#include "tests/emulator/cooperative.h"

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "tests/emulator/block.h"

namespace tw::emulator {

namespace {

/// Whose turn it is among the blocks of a launch.
class Turns {
 public:
  explicit Turns(uint64_t blocks) : unfinished_(blocks) {
    std::iota(unfinished_.begin(), unfinished_.end(), uint64_t{0});
    choose();
  }
  void wait(uint64_t block) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == block; });
  }
  void give_way(uint64_t block) {
    {
      const std::lock_guard lock(mutex_);
      choose();
    }
    changed_.notify_all();
    wait(block);
  }
  void finish(uint64_t block) {
    {
      const std::lock_guard lock(mutex_);
      std::erase(unfinished_, block);
      choose();
    }
    changed_.notify_all();
  }

 private:
  void choose() {
    static std::minstd_rand draw(29);  // launches run one at a time
    if (!unfinished_.empty()) turn_ = unfinished_[draw() % unfinished_.size()];
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<uint64_t> unfinished_;
  uint64_t turn_ = 0;
};

thread_local Turns* turns = nullptr;  // of the launch whose block this CPU thread runs
thread_local uint64_t own_block = 0;

}  // namespace

void run_cooperative_grid(dim3 grid, dim3 block, const std::function<void()>& thread) {
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  Turns all(blocks);
  std::vector<std::thread> threads;
  for (uint64_t b = 0; b < blocks; ++b)
    threads.emplace_back([&, b] {
      turns = &all, own_block = b;
      all.wait(b);
      run_block(grid, block, b, thread);
      all.finish(b);
    });
  for (std::thread& each : threads) each.join();
}

void give_way() {
  if (turns == nullptr) {
    fmt::print(stderr, "[emulator] a block waits for another, which may never run\n");
    std::abort();
  }
  turns->give_way(own_block);
}

bool& refuse_cooperative() {
  static bool refuse = false;
  return refuse;
}

}  // namespace tw::emulator

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  if (attribute != cudaDevAttrMultiProcessorCount) return cudaErrorInvalidValue;
  *value = tw::emulator::kProcessors;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, size_t) {
  *blocks = tw::emulator::kBlocksOfProcessor;
  return cudaSuccess;
}
}
