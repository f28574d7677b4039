#include "apps/common/captured_step.h"

#include "sparsify/buckets.h"

namespace tw {

void Captured::operator()(Context& ctx, const std::function<void()>& body) {
  const bool records = has_run_ && !refusal_.happened && graph_ == nullptr;
  has_run_ = true;
  try {
    if (records) graph_ = Graph::record(ctx, body);
  } catch (const CaptureError& error) {
    refusal_ = {true, fmt::format("no CUDA graph, so steps are slower: {}", error.what())};
  }
  if (graph_ == nullptr) return body();
  graph_->launch();
}

CapturedStep::CapturedStep(Context& ctx, Model& model, const Dataset& data, const SgdConfig& sgd,
                           std::span<float> momentum, Loader* loader)
    : ctx_(ctx),
      model_(model),
      dataset_(data),
      seed_(sgd.seed),
      params_{.lr = 0,  // step_inputs_ has that of each step
              .momentum = static_cast<float>(sgd.momentum),
              .weight_decay = static_cast<float>(sgd.weight_decay),
              .nesterov = sgd.nesterov,
              .scale = 1},
      decay_bounds_(bounds_of_decay(model.arena())),
      momentum_(momentum),
      step_inputs_(StepInputs::create(ctx)) {
  if (loader == nullptr)
    data_ = ResidentData::create(ctx, data);
  else
    prefetcher_ = std::make_unique<DevicePrefetcher>(ctx, *loader);
}

void CapturedStep::queue_step() {
  ParameterArena& arena = model_.arena();
  const RecordedStep* const recorded = step_inputs_->recorded();
  ops::Transfers deliveries;
  const PassArgs pass{.ctx = ctx_,
                      .seed = seed_ * 65536,  // as rank 0 draws
                      .recorded = recorded,
                      .deliveries = &deliveries};
  if (data_) data_->next(model_.images(), model_.labels());
  model_.queue_forward(pass);
  model_.backward(pass);
  step_inputs_->check(arena.gradients(), deliveries);
  ops::sgd_update(ctx_, params_, decay_bounds_, arena.gradients(), momentum_, arena.values(), {},
                  recorded);
  model_.refresh(ctx_);
  step_inputs_->advance(model_.sums(), arena.gradients());
}

void CapturedStep::start_epoch(uint32_t epoch, int64_t first) {
  if (prefetcher_) return prefetcher_->start(epoch, first);
  data_->start(shuffled_order(dataset_.size(), seed_, epoch), seed_, epoch,
               static_cast<size_t>(first * model_.labels().shape[0]));
}

std::vector<ops::LossSums> CapturedStep::run(uint64_t step, std::span<const float> lrs) {
  step_inputs_->start(step, lrs);
  for (size_t i = 0; i < lrs.size(); ++i) {
    if (prefetcher_) prefetcher_->next(model_.images(), model_.labels());
    captured_(ctx_, [this] { queue_step(); });
    if (prefetcher_) prefetcher_->prefetch();
  }
  StepInputs::Outcome outcome = step_inputs_->finish();
  if (outcome.bad_launch != SIZE_MAX)
    model_.arena().fail_nonfinite(0, outcome.bad_index, outcome.bad_value,
                                  step + outcome.bad_launch);
  return std::move(outcome.sums);
}

CapturedPasses::CapturedPasses(Context& ctx, Model& model, bool capture) : model_(model) {
  if (capture && ctx.device() == Device::cuda) step_inputs_ = StepInputs::create(ctx);
}

void CapturedPasses::queue_forward(const PassArgs& pass, float grad_scale) {
  queue(forward_, pass, [&](const PassArgs& one) { model_.queue_forward(one, grad_scale); });
}

void CapturedPasses::backward(const PassArgs& pass) {
  queue(backward_, pass, [&](const PassArgs& one) { model_.backward(one); });
}

void CapturedPasses::queue(Captured& captured, const PassArgs& pass,
                           const std::function<void(const PassArgs&)>& body) {
  if (step_inputs_ == nullptr) return body(pass);
  step_inputs_->set_step(pass.step);
  captured(pass.ctx, [&] {
    body({.ctx = pass.ctx, .seed = pass.seed, .recorded = step_inputs_->recorded()});
  });
}

}  // namespace tw
