#include "tests/emulator/block.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <numeric>
#include <random>
#include <vector>

#include "tests/emulator/fiber.h"

thread_local uint3 threadIdx, blockIdx;
thread_local dim3 blockDim, gridDim;

namespace tw::emulator {

namespace {

constexpr uint32_t kWarp = 32;

/// A fiber that runs threads of the block one after the other, until one of them has to wait.
struct Runner {
  explicit Runner(void (*body)()) : fiber(body) {}
  Fiber fiber;
  uint32_t thread = 0;
};

/// A reusable barrier. The values of a round stay valid until the round after the next.
struct Barrier {
  std::vector<Runner*> waiting;
  uint32_t arrived = 0;
  uint64_t round = 0;
  int counted[2] = {};
  WarpValues values[2] = {};
};

class Block {
 public:
  /// The block of this CPU thread, which runs one block at a time.
  static Block& current() {
    static thread_local Block block;
    return block;
  }

  /// Runs the block at blockIdx.
  void run(const std::function<void()>& thread);
  int barrier(bool counts);
  const WarpValues& exchange(uint32_t mask, uint64_t value);

 private:
  /// Body of a runner: runs threads that have not begun, as long as there are any.
  [[noreturn]] void work();
  Runner* next();
  /// Sets threadIdx to the thread of `runner`.
  void make_current(Runner& runner);
  void wait(Barrier& group);
  void end_round(Barrier& group);

  std::minstd_rand draw_{17};
  std::deque<Runner> runners_;
  std::vector<Runner*> idle_, ready_;
  Runner* current_ = nullptr;
  const std::function<void()>* thread_ = nullptr;
  std::vector<uint32_t> order_;  ///< in which the threads begin
  size_t begun_ = 0;
  uint32_t running_ = 0;  ///< threads that have not returned
  Barrier all_;
  std::vector<Barrier> warps_;
};

void Block::run(const std::function<void()>& thread) {
  thread_ = &thread;
  running_ = blockDim.x * blockDim.y * blockDim.z;
  if (order_.size() != running_) {
    order_.resize(running_);
    std::iota(order_.begin(), order_.end(), 0u);
    warps_.resize((running_ + kWarp - 1) / kWarp);
  }
  // part of a shuffle: small blocks would otherwise take most of their time for it
  for (int swaps = 0; swaps < 16; ++swaps)
    std::swap(order_[draw_() % running_], order_[draw_() % running_]);
  begun_ = 0;
  while (running_ > 0) {
    Runner* const runner = next();
    if (runner == nullptr) {
      fmt::print(stderr, "[emulator] {} threads of a block are deadlocked\n", running_);
      std::abort();
    }
    make_current(*runner);
    runner->fiber.resume();
  }
}

/// The runner to resume: one that begins threads while there are any, else one that is ready.
Runner* Block::next() {
  const auto take_last = [](std::vector<Runner*>& from) {
    Runner* const last = from.back();
    from.pop_back();
    return last;
  };
  if (begun_ < order_.size()) {
    if (idle_.empty()) idle_.push_back(&runners_.emplace_back([] { current().work(); }));
    return take_last(idle_);
  }
  if (ready_.empty()) return nullptr;
  std::swap(ready_[draw_() % ready_.size()], ready_.back());
  return take_last(ready_);
}

void Block::make_current(Runner& runner) {
  current_ = &runner;
  threadIdx = {runner.thread % blockDim.x, runner.thread / blockDim.x % blockDim.y,
               runner.thread / blockDim.x / blockDim.y};
}

void Block::work() {
  for (;;) {
    while (begun_ < order_.size()) {
      current_->thread = order_[begun_++];
      make_current(*current_);
      (*thread_)();
      --running_;
      if (running_ > 0 && all_.arrived == running_) end_round(all_);
    }
    idle_.push_back(current_);
    current_->fiber.suspend();
  }
}

void Block::wait(Barrier& group) {
  group.waiting.push_back(current_);
  current_->fiber.suspend();
}

void Block::end_round(Barrier& group) {
  ready_.insert(ready_.end(), group.waiting.begin(), group.waiting.end());
  group.waiting.clear();
  group.arrived = 0;
  group.counted[++group.round % 2] = 0;
}

int Block::barrier(bool counts) {
  const size_t mine = all_.round % 2;
  all_.counted[mine] += counts;
  if (++all_.arrived == running_)
    end_round(all_);
  else
    wait(all_);
  return all_.counted[mine];
}

const WarpValues& Block::exchange(uint32_t mask, uint64_t value) {
  const uint32_t thread = current_->thread, warp = thread / kWarp;
  const auto threads = static_cast<uint32_t>(order_.size());
  const uint32_t lanes = std::min(threads - warp * kWarp, kWarp);
  const int needed = std::popcount(lanes == kWarp ? mask : mask & ((1u << lanes) - 1));
  Barrier& group = warps_[warp];
  WarpValues& values = group.values[group.round % 2];
  values[thread % kWarp] = value;
  if (++group.arrived == static_cast<uint32_t>(needed))
    end_round(group);
  else
    wait(group);
  return values;
}

}  // namespace

int barrier(bool counts) { return Block::current().barrier(counts); }
const WarpValues& exchange(uint32_t mask, uint64_t value) {
  return Block::current().exchange(mask, value);
}

void run_block(dim3 grid, dim3 block, uint64_t number, const std::function<void()>& thread) {
  gridDim = grid, blockDim = block;
  blockIdx = {static_cast<unsigned>(number % grid.x),
              static_cast<unsigned>(number / grid.x % grid.y),
              static_cast<unsigned>(number / grid.x / grid.y)};
  Block::current().run(thread);
}

void run_grid(dim3 grid, dim3 block, const std::function<void()>& thread) {
  static thread_local std::minstd_rand draw(19);
  std::vector<uint64_t> order(uint64_t{grid.x} * grid.y * grid.z);
  std::iota(order.begin(), order.end(), uint64_t{0});
  std::ranges::shuffle(order, draw);
  for (const uint64_t i : order) run_block(grid, block, i, thread);
}

}  // namespace tw::emulator
