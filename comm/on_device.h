// Where a message lies.
#pragma once

#include "comm/communicator.h"
#include "engine/core/copy.h"

namespace tw {

/// Whether `data` lies on ctx's device, behind whose queue it is then to be read and written.
inline bool lies_on_device(const Context& ctx, ConstBytes data) {
  return !data.empty() && device_of(ctx, data.data()) != Device::cpu;
}

}  // namespace tw
