// Communicator: moves bytes between the ranks of one run. Collectives are written once, over it.
//
// Calls are ordered per rank, like on a stream: what a call reads is complete, what it writes is
// usable by the next call on the same Context. All ranks make the same calls in the same order,
// with memory of the same kind: the host's, or that of the context's device.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/core/context.h"
#include "engine/core/error.h"

namespace tw {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

class OperationScope;
class VendorCollectives;

/// The fault of a rank that has waited for another one for longer than it may.
class TimeoutError : public Fault {
 public:
  using Fault::Fault;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* transport() const = 0;

  /// Sends `out` to rank `to` while receiving a message of at most in.size() bytes from rank
  /// `from`; either may be empty-handed (to or from < 0). Returns the bytes received.
  /// Messages between two ranks arrive in order; an empty message is a message. A send may wait
  /// until the peer receives it: two ranks that send to each other do so in one exchange each.
  /// Throws Fault when the peer is gone, the message does not fit, or the peer does not come in
  /// time.
  size_t exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in);
  void send(Context& ctx, int to, ConstBytes out) { exchange(ctx, to, out, -1, {}); }
  size_t receive(Context& ctx, int from, Bytes in) { return exchange(ctx, -1, {}, from, in); }

  /// Seconds on the clock that messages of this rank take their time on: the wall clock, unless a
  /// link is emulated on a virtual one. Only differences on one rank mean something.
  virtual double now() const;

  /// A rank waits so many seconds for another one, in one exchange, and no longer; 0: for ever.
  void set_timeout(double seconds) { timeout_ = seconds; }
  double timeout() const { return timeout_; }
  /// Waits as `other` does, in the name of what it does: a communicator that works for another.
  void inherit_timeout(const Communicator& other);
  /// When a wait that begins now has taken too long.
  std::chrono::steady_clock::time_point deadline() const;
  /// Throws TimeoutError, which names what this rank is doing and whom it waits for (-1: all the
  /// others).
  [[noreturn]] void throw_timeout(int peer) const;

  /// Payload bytes this rank has sent so far.
  uint64_t bytes_sent() const { return bytes_sent_; }
  /// Messages this rank has sent so far.
  uint64_t messages_sent() const { return messages_sent_; }

  /// Tells the other ranks that this one gives up, so that none waits for it for ever. Processes
  /// end with `code`.
  virtual void abort(const char* reason, int code = 1) = 0;
  /// Throws when another rank is known to have given up; for who waits elsewhere meanwhile.
  virtual void check_peers() const {}

  /// What the transport's library does by itself; null where it does nothing.
  virtual VendorCollectives* vendor() { return nullptr; }
  /// The number of the GPU that this rank computes on, where the transport ties it to one; else -1.
  virtual int gpu() const { return -1; }

 protected:
  virtual size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) = 0;

 private:
  friend class OperationScope;

  uint64_t bytes_sent_ = 0, messages_sent_ = 0;
  double timeout_ = 0;
  std::vector<const char*> operations_;  // the outermost first
};

/// What a rank is doing while this lives, in the words of a line about a wait in vain. May nest:
/// an exchange's broadcast.
class OperationScope {
 public:
  OperationScope(Communicator& comm, const char* what) : comm_(comm) {
    comm.operations_.push_back(what);
  }
  ~OperationScope() { comm_.operations_.pop_back(); }
  OperationScope(const OperationScope&) = delete;
  OperationScope& operator=(const OperationScope&) = delete;

 private:
  Communicator& comm_;
};

}  // namespace tw
