#include "layers/linear.h"

namespace tw::layers {

Linear::Linear(ParameterArena& arena, const Options& options) : arena_(arena), options_(options) {
  const bool image = options.in.rank() == 3;
  weight_ = &arena.add({.name = options.name + ".weight",
                        .shape = {options.out, options.in.numel()},
                        .init = Init::normal,
                        .deviation = options.deviation.value_or(he_deviation(options.in.numel())),
                        .layout = image ? Layout::linear_nhwc : Layout::plain,
                        .flattened = image ? options.in : Shape{}});
  bias_ = &arena.add({.name = options.name + ".bias", .shape = {options.out}, .decay = false});
}

TensorRef Linear::plan_y(Planner& plan) {
  const int64_t batch = x_->shape[0], in = options_.in.numel();
  check(x_->numel() == batch * in, "[linear] {}: x is {}; expected {} features a sample",
        options_.name, x_->shape, in);
  const DType out_dtype = options_.logits ? DType::f32 : plan.activations();
  const ops::LinearShape shape{.batch = batch,
                               .in_features = in,
                               .out_features = options_.out,
                               .dtype = plan.activations(),
                               .out_dtype = out_dtype,
                               .input_gradient = input_gradient_};
  op_ = ops::Linear::create(plan.ctx(), shape);
  product_ = {shape.flops(), shape.bytes()};
  plan.product(product_);
  packed_ = plan.persistent({static_cast<int64_t>(op_->packed_bytes())}, DType::u8);
  staged_ = plan.persistent({static_cast<int64_t>(op_->staged_bytes())}, DType::u8);
  const TensorRef y = plan.make({batch, options_.out}, out_dtype);
  plan.scratch(op_->scratch_bytes());
  plan.use({x_, packed_, y});
  return y;
}

TensorRef Linear::plan_dx(Planner& plan) {
  plan.product(product_, input_gradient_ ? 2 : 1);
  plan.use({x_, dy_});
  if (!input_gradient_) return {};
  const TensorRef dx = plan.make(x_->shape);
  plan.use({dy_, dx});
  return dx;
}

Tensor Linear::flat(TensorRef x) const { return x->view({x->shape[0], options_.in.numel()}); }

void Linear::refresh(Context& ctx, ops::Transfers& later) {
  op_->pack(ctx, arena_.value(*weight_), *packed_, later);
}

void Linear::forward(const PassArgs& pass) {
  op_->forward(pass.ctx, flat(x_), *packed_, arena_.value(*bias_), *y_);
}

void Linear::run_backward(const PassArgs& pass) {
  op_->backward_weights(pass.ctx, flat(x_), *dy_, arena_.gradient(*weight_),
                        arena_.gradient(*bias_), pass.accumulate, *staged_);
  pass.gradient_ready(*bias_);
  pass.gradient_ready(*weight_);
  if (dx_) op_->backward_data(pass.ctx, *dy_, *packed_, flat(dx_), *staged_);
}

void Linear::skip_input_gradient() { input_gradient_ = false; }

size_t Linear::describe(NetworkGraph& graph, size_t x) const {
  return graph.add(NetworkGraph::Linear{weight_, bias_}, {x});
}

}  // namespace tw::layers
