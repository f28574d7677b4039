// StepInputs: step number, learning rate and results of a recorded step, kept on the device. The
// host launches many steps without passing arguments or waiting for results.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/core/context.h"
#include "engine/ops/loss.h"
#include "engine/ops/vector.h"

namespace tw {

/// What the ops of a recorded step read when it is launched, in device memory.
struct RecordedStep {
  static constexpr unsigned long long kAllFinite = ~0ull;
  uint64_t step = 0;  ///< of dropout's random draws
  float lr = 0;
  /// Index of the first gradient that is NaN or infinite; updates do nothing unless kAllFinite.
  unsigned long long nonfinite = kAllFinite;
};

class StepInputs {
 public:
  /// Maximum number of launches between start() and finish().
  static constexpr size_t kMost = 64;

  virtual ~StepInputs() = default;
  /// For ctx's device; throws UserError on the CPU, which records nothing.
  static std::unique_ptr<StepInputs> create(Context& ctx);

  /// The argument for the ops of the recorded step.
  virtual const RecordedStep* recorded() const = 0;

  /// The next lrs.size() launches are steps `step`, step + 1, ... at these learning rates.
  virtual void start(uint64_t step, std::span<const float> lrs) = 0;
  /// Runs the deliveries of backward and checks the gradients; record it after backward. From the
  /// first NaN or infinity on, updates do nothing.
  virtual void check(std::span<const float> gradients, const ops::Transfers& deliveries) = 0;
  /// Stores the step's loss sums and advances to the next step; record it last.
  virtual void advance(const Tensor& sums, std::span<const float> gradients) = 0;

  struct Outcome {
    std::vector<ops::LossSums> sums;  ///< one per launch
    size_t bad_launch = SIZE_MAX;  ///< first launch with a NaN or infinite gradient; else SIZE_MAX
    size_t bad_index = 0;          ///< index of that gradient
    float bad_value = 0;           ///< its value
  };
  /// Waits for the launches since start() and returns their results.
  virtual Outcome finish() = 0;

  /// For a host that launches every pass itself, in place of start() and finish().
  virtual void set_step(uint64_t step) = 0;
};

inline constinit DispatchTable<std::unique_ptr<StepInputs>(Context&)> step_inputs_dispatch{
    "step_inputs"};

inline std::unique_ptr<StepInputs> StepInputs::create(Context& ctx) {
  return step_inputs_dispatch(ctx.device(), ctx);
}

}  // namespace tw
