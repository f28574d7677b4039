// StepInputs: what changes from step to step while a recorded one is launched again and again. It
// lies on the device, so that the host neither passes it nor waits for what came out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/core/context.h"
#include "engine/ops/loss.h"

namespace tw {

class StepInputs {
 public:
  /// Launches between two looks of the host.
  static constexpr size_t kMost = 64;

  virtual ~StepInputs() = default;
  static std::unique_ptr<StepInputs> create(Context& ctx);

  /// The next lrs.size() launches are steps `step`, step + 1, ... at these rates. Dropout and the
  /// update, recorded for step 0 and rate 1, follow them.
  virtual void start(uint64_t step, std::span<const float> lrs) = 0;
  /// To be recorded behind backward: from the first NaN or infinity on, updates do nothing.
  virtual void check(std::span<const float> gradients) = 0;
  /// To be recorded last: takes the step's sums and goes on to the next step.
  virtual void advance(const Tensor& sums, std::span<const float> gradients) = 0;

  struct Outcome {
    std::vector<ops::LossSums> sums;  ///< one a launch
    size_t bad_launch = SIZE_MAX;     ///< the first with a gradient that is not finite,
    size_t bad_index = 0;             ///< where it is
    float bad_value = 0;              ///< and what stands there
  };
  /// Waits for the launches since start(). Afterwards ops compute for their own arguments again.
  virtual Outcome finish() = 0;

  /// Instead of start() and finish(), where the host goes from step to step: what is launched from
  /// now on is of `step`, at rate 1.
  virtual void set_step(uint64_t step) = 0;
};

extern DispatchTable<std::unique_ptr<StepInputs>(Context&)> step_inputs_dispatch;

}  // namespace tw
