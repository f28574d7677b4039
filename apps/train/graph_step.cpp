#include "apps/train/graph_step.h"

#include "sparsify/buckets.h"

namespace tw {

bool GraphStep::suits(const Context& ctx, const Communicator& comm, const TrainConfig& config) {
  return ctx.device() == Device::cuda && comm.size() == 1 && config.sparsifier == "dense" &&
         config.selector.empty() && config.accumulate == 1 && config.analyze_every == 0;
}

GraphStep::GraphStep(Context& ctx, Model& model, const TrainConfig& config, const Dataset& data,
                     std::span<float> momentum, Loader* loader)
    : ctx_(ctx),
      model_(model),
      dataset_(data),
      seed_(static_cast<uint64_t>(config.seed)),
      batch_(config.batch_size),
      params_{.lr = 1,  // the replay brings the rate
              .momentum = static_cast<float>(config.momentum),
              .weight_decay = static_cast<float>(config.weight_decay),
              .nesterov = config.nesterov,
              .scale = 1},
      decay_bounds_(bounds_of_decay(model.arena())),
      momentum_(momentum),
      replay_(StepInputs::create(ctx)) {
  if (loader == nullptr)
    data_ = ResidentData::create(ctx, data);
  else
    prefetcher_ = std::make_unique<DevicePrefetcher>(ctx, *loader);
  rehearse();
  graph_ = Graph::record(ctx, [this] { queue_step(); });
}

void GraphStep::queue_step() {
  ParameterArena& arena = model_.arena();
  const PassArgs pass{.ctx = ctx_, .seed = seed_ * 65536};  // as rank 0 draws
  if (data_) data_->next(model_.images(), model_.labels());
  model_.queue_forward(pass);
  model_.backward(pass);
  replay_->check(arena.gradients());
  ops::sgd_update(ctx_, params_, decay_bounds_, arena.gradients(), momentum_, arena.values());
  model_.refresh(ctx_);
  replay_->advance(model_.sums(), arena.gradients());
}

/// Takes a step whose traces are removed: libraries load kernels when they are first called, which
/// a recording does not allow. What a loader would bring is not part of it.
void GraphStep::rehearse() {
  HostFloats values = model_.arena().host_values(), statistics = model_.arena().host_statistics();
  HostFloats momentum(ctx_, momentum_);
  const float still = 0;
  if (data_) start_epoch(0, 0);
  replay_->start(0, std::span(&still, 1));
  queue_step();
  replay_->finish();
  values.write();
  statistics.write();
  momentum.write();
  model_.refresh(ctx_);
}

void GraphStep::start_epoch(uint32_t epoch, int64_t first) {
  if (prefetcher_) return prefetcher_->start(epoch, first);
  data_->start(shuffled_order(dataset_.size(), seed_, epoch), seed_, epoch,
               static_cast<size_t>(first * batch_));
}

std::vector<ops::LossSums> GraphStep::run(uint64_t step, std::span<const float> lrs) {
  replay_->start(step, lrs);
  for (size_t i = 0; i < lrs.size(); ++i) {
    if (prefetcher_) prefetcher_->next(model_.images(), model_.labels());
    graph_->launch();
    if (prefetcher_) prefetcher_->prefetch();
  }
  StepInputs::Outcome outcome = replay_->finish();
  if (outcome.bad_launch != SIZE_MAX)
    model_.arena().fail_nonfinite(0, outcome.bad_index, outcome.bad_value,
                                  step + outcome.bad_launch);
  return std::move(outcome.sums);
}

}  // namespace tw
