#include "models/model.h"

#include "engine/ops/conv2d.h"
#include "engine/ops/normalize.h"
#include "engine/ops/vector.h"

namespace tw {

Model::Model(const std::string& name, const ModelSpec& spec) : name_(name), spec_(spec) {
  const ModelFactory& factory = models().find(name).value.make;
  const Shape& image = spec.image;
  check(image.rank() == 3 && image[0] >= 1 && image[1] >= 1 && image[2] >= 1,
        "[model] image size is {}; expected (height, width, channels), each at least 1", image);
  check(spec.classes >= 2, "[model] {} classes; at least 2 are needed", spec.classes);
  net_ = factory(arena_, spec);
  if (spec.decay_all) arena_.decay_all();
}

Planner::Memory Model::plan(Context& ctx, const PlanConfig& config) {
  const int64_t channels = spec_.image[2];
  check(config.batch >= 1, "[model] batch size is {}; expected at least 1", config.batch);
  check(std::ssize(config.mean) == channels && std::ssize(config.deviation) == channels,
        "[model] normalisation has {} means and {} deviations; images have {} channels",
        config.mean.size(), config.deviation.size(), channels);
  config_ = config;
  planner_ = std::make_unique<Planner>(ctx, config.activations);
  Planner& plan = *planner_;
  plan.recompute = config.recompute;

  const Shape batch{config.batch, spec_.image[0], spec_.image[1], channels};
  images_ = plan.persistent(batch, DType::u8);
  labels_ = plan.persistent({config.batch}, DType::i32);
  sums_ = plan.persistent(ops::kLossSumsShape, DType::u8);
  input_ = plan.make(batch);
  plan.use({images_, input_});

  net_->skip_input_gradient();
  logits_ = net_->plan_forward(plan, input_);
  check_logits();
  dlogits_ = plan.make(logits_->shape, DType::f32);
  plan.use({logits_, labels_, dlogits_});
  net_->plan_backward(plan, {dlogits_});
  plan.join();
  plan.use({logits_});  // the caller may read them after the step
  return plan.layout();
}

void Model::check_logits() const {
  const Shape expected{config_.batch, spec_.classes};
  check<std::logic_error>(logits_->shape == expected && logits_->dtype == DType::f32,
                          "[model] {} yields {} of {}; expected {} of f32", name_, logits_->shape,
                          tw::name(logits_->dtype), expected);
}

void Model::allocate(Context& ctx, std::optional<uint64_t> seed) {
  check<std::logic_error>(planner_ != nullptr, "[model] allocate comes after plan");
  planner_->commit();
  arena_.allocate(ctx, seed);
  refresh(ctx);
}

void Model::refresh(Context& ctx) {
  ops::Transfers conversions;
  net_->refresh(ctx, conversions);
  ops::transfer(ctx, conversions);
}

void Model::queue_forward(const PassArgs& pass, float grad_scale) {
  ops::normalize(pass.ctx, *images_, config_.mean, config_.deviation, *input_);
  net_->forward(pass);
  // evaluation uses labels without smoothing
  const float smoothing = pass.training ? config_.label_smoothing : 0.0f;
  ops::softmax_cross_entropy(pass.ctx, *logits_, *labels_, smoothing, grad_scale,
                             pass.training ? *dlogits_ : Tensor{}, *sums_);
}

NetworkGraph Model::graph() const {
  check<std::logic_error>(planner_ != nullptr, "[model] graph comes after plan");
  NetworkGraph graph;
  net_->describe(graph, 0);
  return graph;
}

void Model::backward(const PassArgs& pass) {
  // on_gradient_ready reads each gradient at once
  if (pass.deliveries != nullptr || pass.on_gradient_ready) return net_->backward(pass);
  ops::Transfers deliveries;
  PassArgs collecting = pass;
  collecting.deliveries = &deliveries;
  net_->backward(collecting);
  ops::transfer(pass.ctx, deliveries);
}

}  // namespace tw
