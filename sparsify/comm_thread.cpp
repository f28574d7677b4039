#include "sparsify/comm_thread.h"

#include <utility>

namespace tw {

CommThread::CommThread(std::function<void()> prepare, std::function<void(size_t)> job)
    : prepare_(std::move(prepare)), job_(std::move(job)), thread_([this] { run(); }) {}

CommThread::~CommThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CommThread::start() {
  const std::lock_guard lock(mutex_);
  released_ = done_ = 0;
}

void CommThread::release(size_t count) {
  {
    const std::lock_guard lock(mutex_);
    released_ = count;
  }
  changed_.notify_all();
}

void CommThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ == released_ || error_; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void CommThread::run() {
  prepare_();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || (done_ < released_ && !error_); });
    if (ending_) return;
    const size_t job = done_;
    lock.unlock();
    std::exception_ptr error;
    try {
      job_(job);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace tw
