// LengthPrefixedCommunicator: messages whose length the receiver does not know, over a wire on
// which both sides must know it (NCCL's).
//
// The length goes ahead over another communicator, and a short message from the host's memory with
// it. So a message costs one short message of the other communicator more than the wire's own, in
// which a peer that is gone is noticed before the wire would hang; barriers and small tables of the
// host never touch the wire.
#pragma once

#include "comm/communicator.h"

namespace tw {

class LengthPrefixedCommunicator : public Communicator {
 public:
  /// Host messages up to this length need no wire: short enough for MPI to send them at once.
  static constexpr size_t kCarried = 4096;

  int rank() const override { return lengths_.rank(); }
  int size() const override { return lengths_.size(); }
  double now() const override { return lengths_.now(); }
  void check_peers() const override { lengths_.check_peers(); }

 protected:
  /// `lengths` outlives this and is not used beside it.
  explicit LengthPrefixedCommunicator(Communicator& lengths) : lengths_(lengths) {}

  size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) final;
  /// Sends `out` and receives just in.size() bytes; either may be empty. What the context queued is
  /// waited for; what comes is there when the call returns.
  virtual void move(Context& ctx, int to, ConstBytes out, int from, Bytes in) = 0;

  Communicator& lengths_;
};

}  // namespace tw
