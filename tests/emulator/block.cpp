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

/// Runs threads one after the other, until one of them has to wait; then others take over.
struct Runner {
  explicit Runner(void (*body)()) : fiber(body) {}
  Fiber fiber;
  uint32_t thread = 0;
};

/// Threads that wait for each other, again and again; what they gave in one round is there until
/// the round after the next.
struct Meeting {
  std::vector<Runner*> waiting;
  uint32_t arrived = 0;
  uint64_t round = 0;
  int counted[2] = {};
  WarpValues values[2] = {};
};

class Block {
 public:
  /// A thread of the CPU runs one block at a time.
  static Block& here() {
    static thread_local Block block;
    return block;
  }

  /// The block at blockIdx.
  void run(const std::function<void()>& thread);
  int barrier(bool counts);
  const WarpValues& exchange(uint32_t mask, uint64_t value);

 private:
  /// What a runner does: threads that have not begun, as long as there are any.
  [[noreturn]] void work();
  Runner* next();
  /// The runner's thread is the one that runs.
  void make_current(Runner& runner);
  void wait(Meeting& meeting);
  void end_round(Meeting& meeting);

  std::minstd_rand draw_{17};
  std::deque<Runner> runners_;
  std::vector<Runner*> idle_, ready_;
  Runner* current_ = nullptr;
  const std::function<void()>* thread_ = nullptr;
  std::vector<uint32_t> order_;  ///< of the threads' beginnings
  size_t begun_ = 0;
  uint32_t running_ = 0;  ///< threads that have not returned
  Meeting all_;
  std::vector<Meeting> warps_;
};

void Block::run(const std::function<void()>& thread) {
  thread_ = &thread;
  running_ = blockDim.x * blockDim.y * blockDim.z;
  order_.resize(running_);
  std::iota(order_.begin(), order_.end(), 0u);
  std::ranges::shuffle(order_, draw_);
  begun_ = 0;
  all_ = {};
  warps_.assign((running_ + kWarp - 1) / kWarp, {});
  while (running_ > 0) {
    Runner* const runner = next();
    if (runner == nullptr) {
      fmt::print(stderr, "[emulator] {} threads of a block wait for others for ever\n", running_);
      std::abort();
    }
    make_current(*runner);
    runner->fiber.resume();
  }
}

/// While threads have not begun, these come first.
Runner* Block::next() {
  const auto take_last = [](std::vector<Runner*>& from) {
    Runner* const last = from.back();
    from.pop_back();
    return last;
  };
  if (begun_ < order_.size()) {
    if (idle_.empty()) idle_.push_back(&runners_.emplace_back([] { here().work(); }));
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

void Block::wait(Meeting& meeting) {
  meeting.waiting.push_back(current_);
  current_->fiber.suspend();
}

void Block::end_round(Meeting& meeting) {
  ready_.insert(ready_.end(), meeting.waiting.begin(), meeting.waiting.end());
  meeting.waiting.clear();
  meeting.arrived = 0;
  meeting.counted[++meeting.round % 2] = 0;
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
  Meeting& meeting = warps_[warp];
  WarpValues& values = meeting.values[meeting.round % 2];
  values[thread % kWarp] = value;
  if (++meeting.arrived == static_cast<uint32_t>(needed))
    end_round(meeting);
  else
    wait(meeting);
  return values;
}

}  // namespace

int barrier(bool counts) { return Block::here().barrier(counts); }
const WarpValues& exchange(uint32_t mask, uint64_t value) {
  return Block::here().exchange(mask, value);
}

void run_grid(dim3 grid, dim3 block, const std::function<void()>& thread) {
  static thread_local std::minstd_rand draw(19);
  std::vector<uint64_t> order(uint64_t{grid.x} * grid.y * grid.z);
  std::iota(order.begin(), order.end(), uint64_t{0});
  std::ranges::shuffle(order, draw);
  gridDim = grid, blockDim = block;
  for (const uint64_t i : order) {
    blockIdx = {static_cast<unsigned>(i % grid.x), static_cast<unsigned>(i / grid.x % grid.y),
                static_cast<unsigned>(i / grid.x / grid.y)};
    Block::here().run(thread);
  }
}

}  // namespace tw::emulator
