// Communicator: moves bytes between the ranks of one run. Collectives are written once, over it.
//
// Calls are ordered per rank, like on a stream: what a call reads is complete, what it writes is
// usable by the next call on the same Context. All ranks make the same calls in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/context.h"

namespace tw {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

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
  /// Throws Fault when the peer is gone or the message does not fit.
  size_t exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in);
  void send(Context& ctx, int to, ConstBytes out) { exchange(ctx, to, out, -1, {}); }
  size_t receive(Context& ctx, int from, Bytes in) { return exchange(ctx, -1, {}, from, in); }

  /// Seconds on the clock that messages of this rank take their time on: the wall clock, unless a
  /// link is emulated on a virtual one. Only differences on one rank mean something.
  virtual double now() const;

  /// Payload bytes this rank has sent so far.
  uint64_t bytes_sent() const { return bytes_sent_; }
  /// Messages this rank has sent so far.
  uint64_t messages_sent() const { return messages_sent_; }

  /// Tells the other ranks that this one gives up, so that none waits for it for ever.
  virtual void abort(const char* reason) = 0;

 protected:
  virtual size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) = 0;

 private:
  uint64_t bytes_sent_ = 0, messages_sent_ = 0;
};

}  // namespace tw
