#include "layers/conv2d.h"

namespace tw::layers {

Conv2d::Conv2d(ParameterArena& arena, const Options& options) : arena_(arena), options_(options) {
  const int64_t k = options.kernel;
  weight_ = &arena.add({.name = options.name + ".weight",
                        .shape = {options.out, k, k, options.in},
                        .init = Init::normal,
                        .deviation = he_deviation(k * k * options.in),
                        .layout = Layout::conv_ohwi});
  if (options.bias)
    bias_ = &arena.add({.name = options.name + ".bias", .shape = {options.out}, .decay = false});
}

TensorRef Conv2d::plan_y(Planner& plan) {
  check(x_->shape.rank() == 4 && x_->shape[3] == options_.in,
        "[conv2d] {}: x is {}; expected (N, H, W, {})", options_.name, x_->shape, options_.in);
  const ops::Conv2dShape shape{.batch = x_->shape[0],
                               .height = x_->shape[1],
                               .width = x_->shape[2],
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
  staged_ = plan.persistent({static_cast<int64_t>(op_->staged_bytes())}, DType::u8);
  const TensorRef y = plan.make(shape.y());
  plan.scratch(op_->scratch_bytes());
  plan.use({x_, packed_, y});
  return y;
}

TensorRef Conv2d::plan_dx(Planner& plan) {
  plan.product(product_, input_gradient_ ? 2 : 1);
  // weight gradients come first, so that dx may share the memory of x unless they run beside it
  plan.join();
  if (const auto bytes = op_->beside_bytes(); bytes && !plan.recompute) {
    beside_ = plan.make({static_cast<int64_t>(*bytes)}, DType::u8);
    plan.use_beside({x_, dy_, beside_});
  } else {
    plan.use({x_, dy_});
  }
  if (!input_gradient_) return {};
  const TensorRef dx = plan.make(x_->shape);
  plan.use({dy_, dx});
  return dx;
}

void Conv2d::refresh(Context& ctx, ops::Transfers& later) {
  op_->pack(ctx, arena_.value(*weight_), *packed_, later);
}

void Conv2d::forward(const PassArgs& pass) {
  op_->forward(pass.ctx, *x_, *packed_, bias_ ? arena_.value(*bias_) : Tensor{}, *y_);
}

void Conv2d::run_backward(const PassArgs& pass) {
  op_->backward_weights(pass.ctx, *x_, *dy_, arena_.gradient(*weight_),
                        bias_ ? arena_.gradient(*bias_) : Tensor{}, pass.accumulate, *staged_,
                        beside_ ? *beside_ : Tensor{}, pass.deliveries);
  if (bias_) pass.gradient_ready(*bias_);
  pass.gradient_ready(*weight_);
  if (dx_) op_->backward_data(pass.ctx, *dy_, *packed_, *dx_);
}

void Conv2d::skip_input_gradient() { input_gradient_ = false; }

size_t Conv2d::describe(NetworkGraph& graph, size_t x) const {
  return graph.add(
      NetworkGraph::Conv2d{weight_, bias_, options_.kernel, options_.stride, options_.padding},
      {x});
}

}  // namespace tw::layers
