#include "engine/ops/step_inputs.h"

namespace tw {

constinit DispatchTable<std::unique_ptr<StepInputs>(Context&)> step_inputs_dispatch{"step_inputs"};

std::unique_ptr<StepInputs> StepInputs::create(Context& ctx) {
  return step_inputs_dispatch(ctx.device(), ctx);
}

}  // namespace tw
