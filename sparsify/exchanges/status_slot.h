// How a dense sum carries the ranks' control words: as one float behind the gradient that is summed
// with it. Above 0, some rank was told to stop; NaN, some rank's gradient is not finite, and only
// then do the ranks say which one it is.
#pragma once

#include "sparsify/exchange.h"

namespace tw {

class StatusSlot {
 public:
  /// Takes the float behind the gradient (where buckets follow each other, the next one's first
  /// element), which lies on ctx's device, and writes the rank's own word there.
  StatusSlot(Context& ctx, std::span<float> gradient_control, const Control& control);

  /// After the sum, on all ranks: what they said together. Gives the float back.
  void settle(Context& ctx, Communicator& comm, Control& control) const;
  std::span<float> sum() const { return slot_; }

 private:
  std::span<float> slot_;
  float borrowed_;
};

}  // namespace tw
