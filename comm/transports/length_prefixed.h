// LengthPrefixedCommunicator: messages of unknown length over a library that needs the length on
// both sides (NCCL).
//
// The length travels over another communicator, the bootstrap, and a short message in host memory
// travels with it. The cost is one short message of the bootstrap per message. A peer that is gone
// is noticed there, before the library would hang; barriers and small host tables never reach the
// library.
//
// This is not exchange_variable(): the payload travels over another transport than its length, and
// whole, so the receiver allocates nothing for it.
#pragma once

#include "comm/communicator_decorator.h"

namespace tw {

class LengthPrefixedCommunicator : public CommunicatorDecorator {
 public:
  /// Host messages up to this length travel with their length: short enough for MPI to send them
  /// eagerly.
  static constexpr size_t kCarried = 4096;

 protected:
  /// `bootstrap` outlives this; nothing else uses it meanwhile.
  explicit LengthPrefixedCommunicator(Communicator& bootstrap) : CommunicatorDecorator(bootstrap) {}

  size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) final;
  /// Sends `out` and receives exactly in.size() bytes; either may be empty. Waits for what the
  /// context has queued; the received bytes are complete on return.
  virtual void move(Context& ctx, int to, ConstBytes out, int from, Bytes in) = 0;
};

}  // namespace tw
