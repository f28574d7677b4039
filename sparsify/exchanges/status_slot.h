// StatusSlot: adds the status of the ranks to a dense sum, as one more float after the gradient.
// After the sum the float is 0, above 0 if some rank received a stop signal, or NaN if some
// gradient is not finite. The ranks exchange their control words only if it is NaN.
//
// The slot is the float after the bucket in the gradient vector: the first gradient of the bucket
// behind it, or the arena's spare float. The slot saves this float, overwrites it for the sum, and
// restores it in settle; the gradient is not copied. Buckets are exchanged one at a time, from the
// end of the vector to its start, so the bucket behind has already been exchanged.
#pragma once

#include "sparsify/exchange.h"

namespace tw {

class StatusSlot {
 public:
  /// Saves the last float of `gradient_control`, in the memory of ctx's device, and writes this
  /// rank's status there.
  StatusSlot(Context& ctx, std::span<float> gradient_control, const Control& control);

  /// Called on all ranks after the sum: merges the control of all ranks and restores the float.
  void settle(Context& ctx, Communicator& comm, Control& control) const;
  /// The one float of the slot.
  std::span<float> sum() const { return slot_; }

 private:
  std::span<float> slot_;
  float saved_;
};

}  // namespace tw
