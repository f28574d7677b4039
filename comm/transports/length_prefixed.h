// LengthPrefixedCommunicator: messages of unknown length over a library that needs the length on
// both sides (NCCL).
//
// The length is sent over another communicator, the bootstrap, together with the message itself if
// it is short and in host memory. The cost is one short bootstrap message per message. The
// bootstrap reports a missing peer before the library could hang. Barriers and short host messages
// do not use the library.
//
// In contrast to exchange_variable(), the payload is sent in one piece and over another transport
// than its length, so the receiver allocates no memory for it.
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
