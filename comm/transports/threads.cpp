// Threads transport: ranks are threads of one process. Messages pass by rendezvous: the sender
// posts the address of its bytes, the receiver copies them from there, and the sender continues
// when that is done. Waiting ranks sleep. Ranks that share a GPU copy within its memory and the
// host does not wait: the copy is queued after the sender's earlier work, and the sender's later
// work after the copy.

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "comm/on_device.h"
#include "comm/transports.h"
#include "engine/device/event.h"

namespace tw {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kGrace = 2;  // seconds for the others to notice that a rank has failed

/// A rank's wait for another one.
struct Wait {
  const Communicator& comm;
  int peer;
  WaitLimit& limit;
};

/// One direction between two ranks. Holds one message at a time.
class Channel {
 public:
  void post(Context& ctx, ConstBytes message, const Wait& wait) {
    {
      std::unique_lock lock(mutex_);
      wait_for(lock, State::empty, wait);
      on_device_ = lies_on_device(ctx, message);
      if (on_device_ && !sent_) {
        sent_ = Event::create(ctx);
        taken_ = Event::create(ctx);
      }
      if (on_device_) sent_->record(ctx);
      message_ = message;
      state_ = State::posted;
    }
    changed_.notify_one();
  }

  size_t take(Context& ctx, Bytes in, const Wait& wait) {
    std::unique_lock lock(mutex_);
    wait_for(lock, State::posted, wait);
    check<Fault>(message_.size() <= in.size(),
                 "[threads] a message of {} bytes does not fit in the {} bytes the receiver has",
                 message_.size(), in.size());
    const ConstBytes message = message_;
    const bool queued = on_device_;
    state_ = State::taking;
    lock.unlock();
    const Taken taken(*this);
    if (queued) sent_->make_wait(ctx);
    copy_bytes(ctx, message, in.first(message.size()));
    if (queued) taken_->record(ctx);
    return message.size();
  }

  void wait_until_taken(Context& ctx, const Wait& wait) {
    std::unique_lock lock(mutex_);
    wait_for(lock, State::empty, wait);
    if (on_device_) taken_->make_wait(ctx);
  }

  /// Afterwards no host thread reads the posted message. A queued device copy may still read it;
  /// the device frees memory after queued work.
  void withdraw() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return state_ != State::taking; });
    state_ = State::empty;
  }

  /// Makes current and later waits throw Fault. The first reason is kept.
  void close(const std::string& reason) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_.empty()) closed_ = reason;
    }
    changed_.notify_all();
  }

 private:
  enum class State : uint8_t { empty, posted, taking };

  /// A message that is being copied; its destructor lets the sender continue, also after an
  /// exception.
  struct Taken {
    explicit Taken(Channel& from) : channel(from) {}
    ~Taken() {
      {
        const std::lock_guard lock(channel.mutex_);
        channel.state_ = State::empty;
      }
      channel.changed_.notify_one();
    }
    Channel& channel;
  };

  void wait_for(std::unique_lock<std::mutex>& lock, State wanted, const Wait& wait) {
    const auto over = [&] { return state_ == wanted || !closed_.empty(); };
    if (!wait_within(changed_, lock, wait.limit, over)) wait.comm.throw_timeout(wait.peer);
    if (state_ != wanted) throw Fault(closed_);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::empty;
  ConstBytes message_;
  bool on_device_ = false;               ///< the message is in device memory
  std::unique_ptr<Event> sent_, taken_;  ///< device memory: the bytes are ready; they are copied
  std::string closed_;
};

/// A message in a channel; its bytes may be freed after the destructor.
class Posted {
 public:
  Posted(Context& ctx, Channel& channel, ConstBytes message, const Wait& wait) : channel_(channel) {
    channel_.post(ctx, message, wait);
  }
  ~Posted() { channel_.withdraw(); }
  Posted(const Posted&) = delete;
  Posted& operator=(const Posted&) = delete;

 private:
  Channel& channel_;
};

/// State that the ranks of one run share.
class Hub {
 public:
  explicit Hub(int ranks) : ranks_(ranks), channels_(static_cast<size_t>(ranks) * ranks) {}

  int ranks() const { return ranks_; }
  Channel& channel(int from, int to) { return channels_[static_cast<size_t>(from) * ranks_ + to]; }

  /// Called when `rank` has returned: later waits for it throw Fault.
  void leave(int rank) {
    const std::string reason = fmt::format("[threads] rank {} has already ended", rank);
    for (int other = 0; other < ranks_; ++other) {
      channel(rank, other).close(reason);
      channel(other, rank).close(reason);
    }
  }

  /// `limit`: seconds within which the other ranks should notice; 0: no limit.
  void abort(int rank, const char* reason, double limit) {
    {
      const std::lock_guard lock(mutex_);
      if (culprit_ < 0) {
        culprit_ = rank;
        reason_ = reason;
        if (limit > 0)
          last_moment_ = Clock::now() +
                         std::chrono::round<Clock::duration>(std::chrono::duration<double>(limit));
      }
    }
    changed_.notify_all();
    const std::string text = fmt::format("[threads] rank {} failed: {}", rank, reason);
    for (Channel& channel : channels_) channel.close(text);
  }

  void ended() {
    {
      const std::lock_guard lock(mutex_);
      ++ended_;
    }
    changed_.notify_all();
  }

  /// Waits until `started` ranks have ended. A thread that hangs can be neither joined nor ended:
  /// when one is left at last_moment_, the process exits.
  void wait_for_end(size_t started) {
    std::unique_lock lock(mutex_);
    const auto all = [&] { return ended_ == started; };
    changed_.wait(lock, [&] { return all() || last_moment_ != Clock::time_point::max(); });
    if (changed_.wait_until(lock, last_moment_, all)) return;
    write_error_line("error: " + reason_);
    std::fflush(nullptr);
    _exit(1);
  }

  /// Throws when a rank other than `rank` has failed.
  void check_peers(int rank) {
    const std::lock_guard lock(mutex_);
    check<Fault>(culprit_ < 0 || culprit_ == rank, "[threads] rank {} failed: {}", culprit_,
                 reason_);
  }

  std::shared_ptr<void> share(size_t call, const std::function<std::shared_ptr<void>()>& make) {
    const std::lock_guard lock(mutex_);
    if (call == shared_.size()) shared_.push_back({make(), 0});
    Shared& shared = shared_[call];
    // the ranks own it
    return ++shared.given == ranks_ ? std::move(shared.object) : shared.object;
  }

  /// The rank that failed first, or -1. For use after the run.
  int culprit() const { return culprit_; }

 private:
  struct Shared {
    std::shared_ptr<void> object;
    int given;  ///< to so many ranks
  };

  int ranks_;
  std::vector<Channel> channels_;
  std::vector<Shared> shared_;  // by call
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t ended_ = 0;
  int culprit_ = -1;
  std::string reason_;
  Clock::time_point last_moment_ = Clock::time_point::max();
};

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(Hub& hub, int rank) : hub_(hub), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return hub_.ranks(); }
  const char* transport() const override { return "threads"; }
  void abort(const char* reason, int) override { hub_.abort(rank_, reason, timeout()); }
  void check_peers() const override { hub_.check_peers(rank_); }
  std::shared_ptr<void> share(const std::function<std::shared_ptr<void>()>& make) override {
    return hub_.share(shared_++, make);
  }
  int sharing_ranks() const override { return size(); }

 protected:
  size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) override {
    WaitLimit limit = wait_limit();
    const auto receive = [&] {
      return from >= 0 ? hub_.channel(from, rank_).take(ctx, in, {*this, from, limit}) : 0;
    };
    if (to < 0) return receive();
    Channel& outgoing = hub_.channel(rank_, to);
    const Posted posted(ctx, outgoing, out, {*this, to, limit});
    const size_t received = receive();
    outgoing.wait_until_taken(ctx, {*this, to, limit});
    return received;
  }

 private:
  Hub& hub_;
  int rank_;
  size_t shared_ = 0;  // calls of share()
};

}  // namespace

void run_on_threads(int ranks, const std::function<void(Communicator&)>& body) {
  check(ranks >= 1, "[threads] {} workers asked for; at least 1 is needed", ranks);
  Hub hub(ranks);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(ranks));
  const auto give_up = [&](int rank, const char* reason, double limit) {
    errors[rank] = std::current_exception();
    hub.abort(rank, reason, limit);
  };
  const auto run_rank = [&](int rank) {
    ThreadCommunicator comm(hub, rank);
    try {
      body(comm);
      hub.leave(rank);
    } catch (const TimeoutError& error) {
      give_up(rank, error.what(), kGrace);  // the other ranks time out at about the same time
    } catch (const std::exception& error) {
      give_up(rank, error.what(), comm.timeout());
    } catch (...) {
      give_up(rank, "unknown exception", comm.timeout());
    }
    hub.ended();
  };

  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    try {
      threads.emplace_back(run_rank, rank);
    } catch (const std::system_error& error) {
      give_up(rank, "the system has no thread left for it", 0);
      break;
    }
  }
  hub.wait_for_end(threads.size());
  threads.clear();  // joins

  // the errors of the other ranks follow from the first one
  if (const int culprit = hub.culprit(); culprit >= 0 && errors[culprit])
    std::rethrow_exception(errors[culprit]);
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace tw
