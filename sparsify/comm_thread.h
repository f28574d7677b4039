// CommThread: a thread that does numbered jobs one after the other while its owner works on.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace tw {

class CommThread {
 public:
  /// `job(i)` is called on the thread, for i = 0, 1, ... of each round, after `prepare` once.
  CommThread(std::function<void()> prepare, std::function<void(size_t)> job);
  ~CommThread();
  CommThread(const CommThread&) = delete;
  CommThread& operator=(const CommThread&) = delete;

  /// Starts a round of jobs; none may be done yet.
  void start();
  /// Jobs below `count` may be done. Never waits.
  void release(size_t count);
  /// Waits until all released jobs are done; rethrows what a job threw (later ones are skipped).
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
