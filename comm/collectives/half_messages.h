// Allreduce with messages of 16-bit values.
#pragma once

#include "comm/collectives/collectives.h"
#include "engine/core/dtype.h"

namespace tw {

/// The allreduce with every message of its vector rounded to `format`: half the bytes in as many
/// messages. Sums are computed in f32; a partial sum is rounded each time it is sent. The result is
/// rounded on all ranks, to the same bits. For f32, `allreduce` itself. `allreduce` must sum each
/// element on one rank and copy it to the others; the vendor collectives need not.
Allreduce with_messages_in(ValueFormat format, Allreduce allreduce);

}  // namespace tw
