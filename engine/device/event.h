// Event: a point in what one context has queued, behind which another context can go on without a
// wait of the host.
#pragma once

#include <memory>

#include "engine/core/context.h"

namespace tw {

class Event {
 public:
  virtual ~Event() = default;
  /// Of ctx's device. On the CPU, where nothing is queued, there is nothing to go on behind.
  static std::unique_ptr<Event> create(Context& ctx);

  /// The point: what ctx was given so far.
  virtual void record(Context& ctx) = 0;
  /// What ctx is given from now on comes behind the point last recorded, if there is one.
  virtual void make_wait(Context& ctx) = 0;
};

extern DispatchTable<std::unique_ptr<Event>()> event_dispatch;

}  // namespace tw
