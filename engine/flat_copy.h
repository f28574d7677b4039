// Copies of flat vectors between the memories of the host and of a device.
#pragma once

#include <span>

#include "engine/context.h"

namespace tw {

// Vectors of equal length; the call returns when the copy is done. On the CPU both are the host's.
void copy_to_device(Context& ctx, std::span<const float> host, std::span<float> device);
void copy_to_host(Context& ctx, std::span<const float> device, std::span<float> host);

/// One float of ctx's device, behind everything queued there.
float value_at(Context& ctx, const float* place);

}  // namespace tw
