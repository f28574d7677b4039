// Whether a message is in host or device memory.
#pragma once

#include "comm/communicator.h"
#include "engine/core/copy.h"

namespace tw {

/// Whether `data` is in memory of ctx's device: reads and writes are then queued there.
inline bool lies_on_device(const Context& ctx, ConstBytes data) {
  return !data.empty() && device_of(ctx, data.data()) != Device::cpu;
}

}  // namespace tw
