// Vectors of f32 as 16-bit values and back: fp16 or bf16, rounded to nearest even.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/core/context.h"
#include "engine/core/dispatch.h"
#include "engine/core/dtype.h"

namespace tw {

namespace ops {

/// Writes x as `format` (fp16 or bf16) to y, on the context's device. y has 2 bytes per element;
/// memory of the CPU need not be aligned.
void narrow(Context& ctx, ValueFormat format, std::span<const float> x, std::span<std::byte> y);
/// The values of x, as written by narrow(), as f32.
void widen(Context& ctx, ValueFormat format, std::span<const std::byte> x, std::span<float> y);

/// The same in host memory, on this thread.
void narrow(ValueFormat format, std::span<const float> x, std::byte* y);
void widen(ValueFormat format, const std::byte* x, std::span<float> y);

inline constinit DispatchTable<void(Context&, ValueFormat, std::span<const float>,
                                    std::span<std::byte>)>
    narrow_dispatch{"narrow"};
inline constinit DispatchTable<void(Context&, ValueFormat, std::span<const std::byte>,
                                    std::span<float>)>
    widen_dispatch{"widen"};

}  // namespace ops
}  // namespace tw
