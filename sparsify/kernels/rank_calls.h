// RankCalls: bookkeeping of calls that the ranks of a process make from a thread each. The rank
// that arrives first in a call prepares what all use; the others wait until it has.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/core/error.h"

namespace tw {

class RankCalls {
 public:
  /// `what` begins the messages of errors.
  RankCalls(const char* what, int ranks) : what_(what), calls_(ranks) {}

  /// A rank's next call. prepare() returns a number of bytes and runs on the first rank, without
  /// the lock. Throws Fault on the others when it has thrown. A rank begins a call only when all
  /// have ended the call before.
  template <class Prepare>
  void begin(int rank, const Prepare& prepare) {
    if (!is_first(++calls_[rank])) return;
    try {
      settle(State::ready, prepare());
    } catch (...) {
      settle(State::failed, 0);
      throw;
    }
  }
  /// Each rank calls it when it needs no more of what was prepared.
  void end() {
    const std::lock_guard lock(mutex_);
    ++ended_;
  }
  /// Sum of the bytes prepared so far.
  uint64_t bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  enum class State : uint8_t { preparing, ready, failed };

  /// False when another rank has prepared.
  bool is_first(uint64_t call) {
    std::unique_lock lock(mutex_);
    if (call_ != call) {
      check<std::logic_error>(call_ == 0 || ended_ == calls_.size(),
                              "[{}] {} of {} ranks have ended the last call", what_, ended_,
                              calls_.size());
      call_ = call;
      ended_ = 0;
      state_ = State::preparing;
      return true;
    }
    changed_.wait(lock, [&] { return state_ != State::preparing; });
    check<Fault>(state_ == State::ready, "[{}] another rank could not upload the entries", what_);
    return false;
  }

  void settle(State state, uint64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      state_ = state;
      bytes_ += bytes;
    }
    changed_.notify_all();
  }

  const char* what_;
  std::vector<uint64_t> calls_;  // of each rank
  mutable std::mutex mutex_;     // of all below
  std::condition_variable changed_;
  uint64_t call_ = 0, bytes_ = 0;
  size_t ended_ = 0;
  State state_ = State::ready;
};

}  // namespace tw
