// Convolution on cuDNN, NHWC on both sides. Each pass runs the fastest measured plan or, in
// deterministic mode, the first plan that cuDNN's heuristics propose.
#include "engine/ops/conv2d.h"

#include <cudnn.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/core/buffer.h"
#include "engine/cuda/cudnn_plan.h"
#include "engine/device/device_timer.h"
#include "engine/device/graph.h"
#include "engine/ops/cuda/matrix.h"
#include "engine/ops/vector.h"

namespace tw::ops {
namespace {

using cudnn::ConvPlan, cudnn::Convolution, cudnn::ConvPass;

size_t bytes_of(const cudnn::Dims& dims, DType dtype) {
  return static_cast<size_t>(dims[0] * dims[1] * dims[2] * dims[3]) * size_of(dtype);
}

Convolution describe(const Conv2dShape& s, ConvPass pass, bool accumulate = false) {
  return {.pass = pass,
          .x = {s.batch, s.in_channels, s.height, s.width},
          .w = {s.out_channels, s.in_channels, s.kernel, s.kernel},
          .y = {s.batch, s.out_channels, s.out_height(), s.out_width()},
          .x_type = s.dtype,
          .w_type = s.dtype,
          .y_type = s.dtype,
          .stride = s.stride,
          .padding = s.padding,
          .accumulate = accumulate};
}

/// Times the plans of one convolution, on its own operands.
class Race {
 public:
  Race(Context& ctx, const Convolution& c)
      : ctx_(ctx),
        x_(Device::cuda, bytes_of(c.x, c.x_type)),
        w_(Device::cuda, bytes_of(c.w, c.w_type)),
        y_(Device::cuda, bytes_of(c.y, c.y_type)),
        timer_(DeviceTimer::create(ctx)) {}

  /// Seconds per run, from several runs launched as one graph. A single short run would measure
  /// only its launch.
  double seconds(ConvPlan& plan) {
    constexpr int kRuns = 5, kLaunches = 2;
    if (workspace_.bytes() < plan.workspace_bytes())
      workspace_ = Buffer(Device::cuda, plan.workspace_bytes());
    run(plan);  // a first call cannot be captured
    const auto graph = Graph::record(ctx_, [&] {
      for (int i = 0; i < kRuns; ++i) run(plan);
    });
    double best = INFINITY;
    for (int i = 0; i < kLaunches; ++i) {
      timer_->start();
      graph->launch();
      best = std::min(best, timer_->stop() / kRuns);
    }
    return best;
  }

 private:
  void run(ConvPlan& plan) {
    plan.run(ctx_.handles<CudaHandles>().cudnn(), x_.data(), w_.data(), y_.data(),
             workspace_.data());
  }

  Context& ctx_;
  Buffer x_, w_, y_, workspace_;
  std::unique_ptr<DeviceTimer> timer_;
};

/// The plan of a pass; cached in the context by shape and library version.
ConvPlan choose(Context& ctx, const Convolution& c) {
  constexpr int kContenders = 12;
  const MathMode math = ctx.math();
  const std::string key =
      fmt::format("cudnn {} {}{}", cudnnGetVersion(), c.text(), math.tf32 ? " tf32" : "");
  const auto known = ctx.tuning_cache().find(key);
  const cudnn::Target target{.handle = ctx.handles<CudaHandles>().cudnn()};
  std::optional<Race> race;
  std::optional<ConvPlan> best;
  double best_time = INFINITY;
  int contenders = 0;
  cudnn::for_each_plan(target, c, {.deterministic = math.deterministic, .tf32 = math.tf32},
                       [&](ConvPlan plan) {
                         if (math.deterministic) {
                           best = std::move(plan);
                           return false;
                         }
                         if (known != ctx.tuning_cache().end()) {
                           const bool found = plan.text() == known->second;
                           if (found || !best) best = std::move(plan);
                           return !found;
                         }
                         double time = INFINITY;
                         try {
                           if (!race) race.emplace(ctx, c);
                           time = race->seconds(plan);
                         } catch (const cudnn::Refused&) {
                           return true;
                         } catch (const OutOfMemory&) {
                           // another plan may need less memory; commit() reports a step that does
                           // not fit
                         }
                         if (!best || time < best_time) best = std::move(plan), best_time = time;
                         return ++contenders < kContenders;
                       });
  check<Fault>(best.has_value(), "[conv2d] cuDNN {} has no engine for: {}", cudnnGetVersion(),
               c.text());
  if (best_time < INFINITY) ctx.tuning_cache()[key] = best->text();
  return std::move(*best);
}

class Conv2dCuda final : public Conv2d {
 public:
  Conv2dCuda(Context& ctx, const Conv2dShape& shape)
      : shape_(shape),
        forward_(choose(ctx, describe(shape, ConvPass::forward))),
        backward_weights_(choose(ctx, describe(shape, ConvPass::backward_filter))) {
    if (shape.input_gradient)
      backward_data_.emplace(choose(ctx, describe(shape, ConvPass::backward_data)));
  }

  // backward weights: [cuDNN's workspace][dw in the compute type]; bias: [sums of dy], at the start
  size_t scratch_bytes() const override {
    size_t bytes = std::max(forward_.workspace_bytes(),
                            aligned(backward_weights_.workspace_bytes()) + packed_bytes());
    if (backward_data_) bytes = std::max(bytes, backward_data_->workspace_bytes());
    return shape_.bias ? std::max(bytes, column_sums_bytes(shape_.y())) : bytes;
  }
  size_t packed_bytes() const override {
    return static_cast<size_t>(shape_.w().numel()) * size_of(shape_.dtype);
  }

  void pack(Context& ctx, const Tensor& w, const Tensor& packed) override {
    convert(ctx, w, {packed.data, w.shape, shape_.dtype, w.device});
  }

  void forward(Context& ctx, const Tensor& x, const Tensor& packed, const Tensor& bias,
               const Tensor& y) override {
    expect("x", x, shape_.x());
    expect("y", y, shape_.y());
    run(ctx, forward_, x.data, packed.data, y.data);
    if (shape_.bias) add_bias(ctx, y, static_cast<const float*>(bias.data), y);
  }

  void backward_data(Context& ctx, const Tensor& dy, const Tensor& packed,
                     const Tensor& dx) override {
    check<std::logic_error>(backward_data_.has_value(), "[conv2d] made without an input gradient");
    expect("dy", dy, shape_.y());
    expect("dx", dx, shape_.x());
    run(ctx, *backward_data_, dx.data, packed.data, dy.data);
  }

  // cuDNN writes dw in the type of x and dy; deliver() converts it to the fp32 gradient
  void backward_weights(Context& ctx, const Tensor& x, const Tensor& dy, const Tensor& dw,
                        const Tensor& dbias, bool accumulate) override {
    expect("x", x, shape_.x());
    expect("dy", dy, shape_.y());
    const Tensor staged{ctx.scratch().data() + aligned(backward_weights_.workspace_bytes()),
                        shape_.w(), shape_.dtype, Device::cuda};
    run(ctx, backward_weights_, x.data, staged.data, dy.data);
    deliver(ctx, staged, accumulate, static_cast<float*>(dw.data));
    if (shape_.bias)
      column_sums(ctx, dy, ctx.scratch().data(), accumulate, static_cast<float*>(dbias.data));
  }

 private:
  void run(Context& ctx, ConvPlan& plan, void* x, void* w, void* y) const {
    check<std::logic_error>(ctx.scratch().size() >= scratch_bytes(),
                            "[conv2d] {} bytes of scratch; {} are needed", ctx.scratch().size(),
                            scratch_bytes());
    plan.run(ctx.handles<CudaHandles>().cudnn(), x, w, y, ctx.scratch().data());
  }

  void expect(const char* what, const Tensor& tensor, const Shape& shape) const {
    if (tensor.shape == shape && tensor.dtype == shape_.dtype) [[likely]]
      return;
    fail("[conv2d] {} is {} {}; expected {} {}", what, name(tensor.dtype), tensor.shape,
         name(shape_.dtype), shape);
  }

  Conv2dShape shape_;
  ConvPlan forward_, backward_weights_;
  std::optional<ConvPlan> backward_data_;
};

std::unique_ptr<Conv2d> create_cuda(Context& ctx, const Conv2dShape& shape) {
  return std::make_unique<Conv2dCuda>(ctx, shape);
}

const bool conv2d_registered = conv2d_dispatch.add(Device::cuda, create_cuda);

}  // namespace
}  // namespace tw::ops
