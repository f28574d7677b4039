// CommThread: a thread that exchanges the buckets of a step, in order, while backward runs (the
// option --overlap). Messages make progress in it, as MpiRequests::wait polls them.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace tw {

class CommThread {
 public:
  /// The thread calls `prepare` once, then job(0), job(1), ... in each round.
  CommThread(std::function<void()> prepare, std::function<void(size_t)> job);
  ~CommThread();
  CommThread(const CommThread&) = delete;
  CommThread& operator=(const CommThread&) = delete;

  /// Starts a round; no job of it runs before it is released.
  void start();
  /// Lets jobs below `count` run. Does not wait.
  void release(size_t count);
  /// Waits until all released jobs have run. If a job threw, later ones are skipped and it
  /// rethrows.
  void wait();

 private:
  void run();

  std::function<void()> prepare_;
  std::function<void(size_t)> job_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t released_ = 0, done_ = 0;
  bool ending_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace tw
