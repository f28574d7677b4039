#include "engine/ops/step_inputs.h"

namespace tw {

constinit Bodies<std::unique_ptr<Replay>(Context&)> replay_bodies{"replay"};

std::unique_ptr<Replay> Replay::create(Context& ctx) { return replay_bodies(ctx.device(), ctx); }

}  // namespace tw
