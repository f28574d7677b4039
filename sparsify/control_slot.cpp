#include "sparsify/control_slot.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "comm/collectives.h"

namespace tw {

ControlSlot::ControlSlot(std::span<float> gradient_control, const Control& control)
    : slot_(gradient_control.back()), borrowed_(slot_) {
  slot_ = control.stop ? 1.0f : 0.0f;
  if (control.nonfinite != SIZE_MAX) slot_ = std::numeric_limits<float>::quiet_NaN();
}

void ControlSlot::settle(Context& ctx, Communicator& comm, Control& control) const {
  if (!std::isnan(slot_)) {
    control.stop = slot_ > 0;
    return;
  }
  const ControlWord mine = pack(control);
  GatheredBlocks words;
  allgather(ctx, comm, std::as_bytes(std::span(&mine, 1)), sizeof mine, words);
  control = {};
  for (int rank = 0; rank < comm.size(); ++rank) {
    ControlWord word;
    std::memcpy(&word, words[rank].data(), sizeof word);
    merge(control, rank, word);
  }
}

}  // namespace tw
