#include "apps/train/pass_graphs.h"

namespace tw {

PassGraphs::PassGraphs(Context& ctx, Model& model, const TrainConfig& config) : model_(model) {
  if (ctx.device() == Device::cuda && config.accumulate == 1 && !config.overlap)
    replay_ = StepInputs::create(ctx);
}

void PassGraphs::queue_forward(const PassArgs& pass, float grad_scale) {
  queue(forward_, pass, [&](const PassArgs& one) { model_.queue_forward(one, grad_scale); });
}

void PassGraphs::backward(const PassArgs& pass) {
  queue(backward_, pass, [&](const PassArgs& one) { model_.backward(one); });
}

void PassGraphs::queue(Recorded& recorded, const PassArgs& pass,
                       const std::function<void(const PassArgs&)>& body) {
  if (replay_ == nullptr || !recorded.rehearsed) {
    recorded.rehearsed = true;
    return body(pass);
  }
  if (recorded.graph == nullptr) {
    const PassArgs as_recorded{.ctx = pass.ctx, .seed = pass.seed};
    recorded.graph = Graph::record(pass.ctx, [&] { body(as_recorded); });
  }
  replay_->set_step(pass.step);
  recorded.graph->launch();
  replay_->set_step(0);  // for what is queued op by op
}

uint64_t PassGraphs::launches() const {
  uint64_t launches = 0;
  for (const Recorded* one : {&forward_, &backward_})
    if (one->graph) launches += one->graph->launches();
  return launches;
}

}  // namespace tw
