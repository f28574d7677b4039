// Event: a point in the work queued on one context that another context can wait for, without
// blocking the host.
#pragma once

#include <memory>

#include "engine/core/context.h"

namespace tw {

class Event {
 public:
  virtual ~Event() = default;
  /// An event of ctx's device. On the CPU, which queues nothing, both calls do nothing.
  static std::unique_ptr<Event> create(Context& ctx);

  /// Records the work queued on ctx so far.
  virtual void record(Context& ctx) = 0;
  /// Later work on ctx waits for the recorded event, if there is one.
  virtual void make_wait(Context& ctx) = 0;
};

extern DispatchTable<std::unique_ptr<Event>()> event_dispatch;

}  // namespace tw
