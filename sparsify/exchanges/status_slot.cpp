#include "sparsify/exchanges/status_slot.h"

#include <cmath>
#include <limits>

#include "comm/collectives/collectives.h"
#include "engine/core/copy.h"

namespace tw {

StatusSlot::StatusSlot(Context& ctx, std::span<float> gradient_control, const Control& control)
    : slot_(gradient_control.last(1)), saved_(value_at(ctx, slot_.data())) {
  float word = control.stop ? 1.0f : 0.0f;
  if (control.nonfinite != SIZE_MAX) word = std::numeric_limits<float>::quiet_NaN();
  copy_to_device(ctx, {&word, 1}, slot_);
}

void StatusSlot::settle(Context& ctx, Communicator& comm, Control& control) const {
  const float sum = value_at(ctx, slot_.data());
  copy_to_device(ctx, {&saved_, 1}, slot_);
  if (!std::isnan(sum)) {
    control.stop = sum > 0;
    return;
  }
  const std::vector<ControlWord> words = gather(ctx, comm, pack(control));
  control = {};
  for (int rank = 0; rank < comm.size(); ++rank) merge(control, rank, words[rank]);
}

}  // namespace tw
