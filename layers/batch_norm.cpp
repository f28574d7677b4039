#include "layers/batch_norm.h"

namespace tw::layers {

BatchNorm::BatchNorm(ParameterArena& arena, const Options& options)
    : arena_(arena),
      params_{options.epsilon, options.momentum, options.relu},
      channels_(options.channels) {
  const auto parameter = [&](const char* suffix, Init init) {
    return Parameter{
        .name = options.name + suffix, .shape = {options.channels}, .init = init, .decay = false};
  };
  gamma_ = &arena.add(parameter(".weight", options.scale));
  beta_ = &arena.add(parameter(".bias", Init::zeros));
  running_mean_ = &arena.add_statistic(parameter(".running_mean", Init::zeros));
  running_var_ = &arena.add_statistic(parameter(".running_var", Init::ones));
}

TensorRef BatchNorm::plan_forward(Planner& plan, TensorRef x, TensorRef residual) {
  x_ = x;
  residual_ = residual;
  y_ = plan.make(x->shape);
  mean_ = plan.make({channels_}, DType::f32);
  rstd_ = plan.make({channels_}, DType::f32);
  plan.scratch(ops::batch_norm_scratch_bytes(plan.ctx(), x->shape));
  plan.use({x_, residual_, y_, mean_, rstd_});
  return y_;
}

Gradient BatchNorm::plan_backward(Planner& plan, Gradient dy) {
  dy_ = dy;
  dx_ = plan.make(x_->shape);
  // the residual's gradient is the masked dy, written in place of dy
  dresidual_ = residual_ ? dy.main : TensorRef{};
  // with a residual, the ReLU's mask cannot be computed from x alone
  mask_ = params_.relu && residual_ ? y_ : TensorRef{};
  plan.use({x_, mask_, mean_, rstd_, dy.main, dy.extra, dx_});
  return {dx_};
}

namespace {
Tensor or_none(TensorRef ref) { return ref ? *ref : Tensor{}; }
}  // namespace

void BatchNorm::forward(const PassArgs& pass) {
  const ops::BatchNormForward tensors{.x = *x_,
                                      .residual = or_none(residual_),
                                      .y = *y_,
                                      .gamma = arena_.value(*gamma_),
                                      .beta = arena_.value(*beta_),
                                      .running_mean = arena_.statistic(*running_mean_),
                                      .running_var = arena_.statistic(*running_var_),
                                      .saved_mean = *mean_,
                                      .saved_rstd = *rstd_};
  ops::BatchNormParams params = params_;
  params.momentum = pass.momentum.value_or(params.momentum);
  if (pass.training)
    ops::batch_norm_train(pass.ctx, params, tensors);
  else
    ops::batch_norm_infer(pass.ctx, params_, tensors);
}

void BatchNorm::backward(const PassArgs& pass) {
  const ops::BatchNormBackward tensors{.x = *x_,
                                       .y = or_none(mask_),
                                       .dy = *dy_.main,
                                       .dy2 = or_none(dy_.extra),
                                       .dx = *dx_,
                                       .dresidual = or_none(dresidual_),
                                       .gamma = arena_.value(*gamma_),
                                       .beta = arena_.value(*beta_),
                                       .saved_mean = *mean_,
                                       .saved_rstd = *rstd_,
                                       .dgamma = arena_.gradient(*gamma_),
                                       .dbeta = arena_.gradient(*beta_)};
  ops::batch_norm_backward(pass.ctx, params_, tensors, pass.accumulate);
  pass.gradient_ready(*beta_);
  pass.gradient_ready(*gamma_);
}

size_t BatchNorm::describe(NetworkGraph& graph, size_t x) const { return describe(graph, x, {}); }

size_t BatchNorm::describe(NetworkGraph& graph, size_t x, std::optional<size_t> residual) const {
  size_t y = graph.add(
      NetworkGraph::BatchNorm{gamma_, beta_, running_mean_, running_var_, params_.epsilon}, {x});
  if (residual) y = graph.add(NetworkGraph::Add{}, {y, *residual});
  return params_.relu ? graph.add(NetworkGraph::Relu{}, {y}) : y;
}

}  // namespace tw::layers
