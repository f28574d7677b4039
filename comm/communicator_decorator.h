// CommunicatorDecorator: a communicator that sends its messages over another one.
#pragma once

#include "comm/communicator.h"

namespace tw {

/// Forwards everything except messages, timeouts, vendor collectives and shared objects. A subclass
/// overrides do_exchange and whatever else differs.
class CommunicatorDecorator : public Communicator {
 public:
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const char* transport() const override { return inner_.transport(); }
  double now() const override { return inner_.now(); }
  void abort(const char* reason, int code = 1) override { inner_.abort(reason, code); }
  void check_peers() const override { inner_.check_peers(); }
  HostId machine() const override { return inner_.machine(); }
  int gpu() const override { return inner_.gpu(); }
  void discount(uint64_t bytes) override {
    Communicator::discount(bytes);
    inner_.discount(bytes);
  }

 protected:
  /// `inner` outlives this.
  explicit CommunicatorDecorator(Communicator& inner) : inner_(inner) {}

  Communicator& inner_;
};

}  // namespace tw
