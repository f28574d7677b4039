#include "layers/conv2d.h"

namespace tw::layers {

Conv2d::Conv2d(ParameterArena& arena, const Options& options) : arena_(arena), options_(options) {
  const int64_t k = options.kernel;
  weight_ = &arena.add({.name = options.name + ".weight",
                        .shape = {options.out, k, k, options.in},
                        .init = Init::he_normal,
                        .fan = k * k * options.in,
                        .layout = Layout::conv_ohwi});
  if (options.bias)
    bias_ = &arena.add({.name = options.name + ".bias", .shape = {options.out}, .decay = false});
}

TensorRef Conv2d::plan_forward(Planner& plan, TensorRef x) {
  check(x->shape.rank() == 4 && x->shape[3] == options_.in,
        "[conv2d] {}: x is {}; expected (N, H, W, {})", options_.name, x->shape, options_.in);
  const ops::Conv2dShape shape{.batch = x->shape[0],
                               .height = x->shape[1],
                               .width = x->shape[2],
                               .in_channels = options_.in,
                               .out_channels = options_.out,
                               .kernel = options_.kernel,
                               .stride = options_.stride,
                               .padding = options_.padding,
                               .dtype = plan.activations(),
                               .bias = options_.bias,
                               .input_gradient = input_gradient_};
  op_ = ops::Conv2d::create(plan.ctx(), shape);
  product_ = {shape.flops(), shape.bytes()};
  plan.product(product_);
  packed_ = plan.persistent({static_cast<int64_t>(op_->packed_bytes())}, DType::u8);
  x_ = x;
  y_ = plan.make(shape.y());
  plan.scratch(op_->scratch_bytes());
  plan.use({x_, packed_, y_});
  return y_;
}

Gradient Conv2d::plan_backward(Planner& plan, Gradient dy) {
  dy_ = sum_.plan(plan, dy);
  plan.product(product_, input_gradient_ ? 2 : 1);
  // weights first: they are final early, and dx may take the place of x
  plan.use({x_, dy_});
  if (!input_gradient_) return {};
  dx_ = plan.make(x_->shape);
  plan.use({dy_, dx_});
  return {dx_};
}

void Conv2d::refresh(Context& ctx) { op_->pack(ctx, arena_.value(*weight_), *packed_); }

void Conv2d::forward(const PassArgs& pass) {
  op_->forward(pass.ctx, *x_, *packed_, bias_ ? arena_.value(*bias_) : Tensor{}, *y_);
}

void Conv2d::backward(const PassArgs& pass) {
  sum_.run(pass.ctx);
  op_->backward_weights(pass.ctx, *x_, *dy_, arena_.gradient(*weight_),
                        bias_ ? arena_.gradient(*bias_) : Tensor{}, pass.accumulate);
  if (bias_) pass.gradient_ready(*bias_);
  pass.gradient_ready(*weight_);
  if (dx_) op_->backward_data(pass.ctx, *dy_, *packed_, *dx_);
}

bool Conv2d::skip_input_gradient() {
  input_gradient_ = false;
  return true;
}

}  // namespace tw::layers
