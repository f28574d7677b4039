// Communicator: moves bytes between the ranks of one run. All collectives are built on it.
//
// Calls of one rank are ordered, as on a CUDA stream: a call reads its data after all work
// queued earlier on its Context, and the next call on that Context may use what it wrote. All ranks
// make the same calls in the same order, with memory of the same kind: host memory or memory of the
// context's device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/host_id.h"
#include "comm/wait_limit.h"
#include "engine/core/context.h"
#include "engine/core/error.h"

namespace tw {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

class OperationScope;
class VendorCollectives;

/// A rank has waited for another one for longer than the timeout.
class TimeoutError : public Fault {
 public:
  using Fault::Fault;
};

class Communicator {
 public:
  Communicator();
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* transport() const = 0;

  /// Sends `out` to rank `to` and receives at most in.size() bytes from rank `from`. Negative
  /// `to`: sends nothing. Negative `from`: receives nothing. Returns the bytes received.
  /// Messages between two ranks arrive in order; an empty message is a message. A send may block
  /// until the peer receives: two ranks that send to each other both call exchange.
  /// Throws Fault when the peer is gone or the message does not fit, TimeoutError when the peer
  /// does not answer within timeout().
  size_t exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in);
  void send(Context& ctx, int to, ConstBytes out) { exchange(ctx, to, out, -1, {}); }
  size_t receive(Context& ctx, int from, Bytes in) { return exchange(ctx, -1, {}, from, in); }

  /// A CPU context for messages in host memory, for callers that have none. Like the communicator,
  /// it is used by one thread at a time.
  Context& host();

  /// Seconds on the clock that times this rank's messages: the wall clock, or the virtual clock of
  /// an emulated link. Only differences on one rank are meaningful.
  virtual double now() const;

  /// Tells an emulated cluster that this rank has computed for `seconds` in a step of training: a
  /// slow rank waits for as long as it would still compute.
  virtual void computed(double /*seconds*/, uint64_t /*step*/) {}

  /// Bytes that a float of a summed vector takes in a message; less than 4 where messages are
  /// rounded.
  virtual size_t float_bytes() const { return sizeof(float); }

  /// Seconds that a rank waits for another one in one exchange; 0: without limit.
  void set_timeout(double seconds) { timeout_ = seconds; }
  double timeout() const { return timeout_; }
  /// Copies the timeout and the current operations of `other`, for a communicator that works on
  /// behalf of `other`.
  void inherit_timeout(const Communicator& other);
  /// The limit of a wait that begins now.
  WaitLimit wait_limit() const { return WaitLimit(std::chrono::duration<double>(timeout_)); }
  /// Throws TimeoutError, which names the current operation and the rank waited for (-1: all the
  /// others).
  [[noreturn]] void throw_timeout(int peer) const;

  /// Payload bytes this rank has sent so far.
  uint64_t bytes_sent() const { return bytes_sent_; }
  /// Takes back bytes that a measurement has sent.
  virtual void discount(uint64_t bytes) { bytes_sent_ -= bytes; }
  /// Messages this rank has sent so far.
  uint64_t messages_sent() const { return messages_sent_; }

  /// Tells the other ranks that this one has failed, so that none waits for it. Processes exit with
  /// `code`.
  virtual void abort(const char* reason, int code = 1) = 0;
  /// Throws Fault when another rank is known to have failed. Call it in loops that wait for
  /// something other than a message.
  virtual void check_peers() const {}

  /// The machine of this rank.
  virtual HostId machine() const { return this_host(); }
  /// The collectives of the transport's library; null where it has none.
  virtual VendorCollectives* vendor() { return nullptr; }
  /// The number of the GPU that the transport assigns to this rank. -1: none; the context then uses
  /// local rank modulo the number of GPUs (pick_device in engine/cuda/context.cpp).
  virtual int gpu() const { return -1; }

  /// An object that ranks on one device of this process share: the n-th call of each of them
  /// returns the same one, which `make` has created for the first of them. All ranks make the same
  /// calls.
  virtual std::shared_ptr<void> share(const std::function<std::shared_ptr<void>()>& make) {
    return make();
  }
  /// Number of ranks that get the same object; 1 or size().
  virtual int sharing_ranks() const { return 1; }

 protected:
  virtual size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) = 0;

 private:
  friend class OperationScope;

  uint64_t bytes_sent_ = 0, messages_sent_ = 0;
  double timeout_ = 0;
  std::vector<const char*> operations_;  // the outermost first
  std::unique_ptr<Context> host_;
};

/// Names the current operation of a rank during its lifetime, for the text of TimeoutError. Scopes
/// nest: the broadcast inside the exchange gtopk is `gtopk/broadcast`.
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
