#include "engine/ops/loss.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/core/copy.h"
#include "engine/core/parallel.h"
#include "engine/ops/checks.h"

namespace tw::ops {

void softmax_cross_entropy(Context& ctx, const Tensor& logits, const Tensor& labels,
                           float label_smoothing, float grad_scale, const Tensor& dlogits,
                           const Tensor& sums) {
  constexpr auto op = "softmax_cross_entropy";
  check(logits.shape.rank() == 2 && logits.shape[1] > 0, "[{}] logits are {}; expected (N, C)", op,
        logits.shape);
  check_dtype(op, "logits", logits, DType::f32);
  check_dtype(op, "labels", labels, DType::i32);
  check_shape(op, "labels", labels, {logits.shape[0]});
  check(label_smoothing >= 0.0f && label_smoothing <= 1.0f,
        "[{}] label smoothing is {}; expected 0 to 1", op, label_smoothing);
  if (dlogits.data != nullptr) check_like(op, "dlogits", dlogits, logits);
  check_dtype(op, "sums", sums, DType::u8);
  check_shape(op, "sums", sums, kLossSumsShape);
  softmax_cross_entropy_dispatch(ctx.device(), ctx, logits, labels, label_smoothing, grad_scale,
                                 dlogits, sums);
}

LossSums take_sums(Context& ctx, const Tensor& sums) {
  LossSums taken, none;
  const auto on_host = [](LossSums& x) {
    return Tensor{&x, kLossSumsShape, DType::u8, Device::cpu};
  };
  copy(ctx, sums, on_host(taken));
  copy(ctx, on_host(none), sums);
  return taken;
}

namespace {

/// The target is 1 - smoothing on the label plus smoothing / C on every class, as in PyTorch.
struct Target {
  float smoothing;
  float gradient;  ///< factor of softmax - target
};

/// Adds one row to `sums`; gradient may be null.
void add_row(std::span<const float> logits, int32_t label, const Target& target, float* gradient,
             LossSums& sums) {
  const size_t classes = logits.size();
  const float largest = *std::max_element(logits.begin(), logits.end());
  double total = 0, shifted = 0;
  for (const float logit : logits) {
    total += std::exp(logit - largest);
    shifted += logit - largest;
  }
  // -log p[c] = log_total - (logit[c] - largest)
  const double log_total = std::log(total);
  const float own = logits[label];
  sums.loss += (1.0 - target.smoothing) * (log_total - (own - largest)) +
               target.smoothing * (log_total - shifted / static_cast<double>(classes));

  // a comparison with NaN is false, so a NaN row is never correct
  int64_t ahead = 0;
  for (size_t c = 0; c < classes; ++c)
    ahead += !(logits[c] < own || (logits[c] == own && c >= static_cast<size_t>(label)));
  sums.top1 += ahead < 1;
  sums.top5 += ahead < 5;
  sums.count += 1;

  if (gradient == nullptr) return;
  const float inverse = static_cast<float>(1.0 / total);
  const float even = target.smoothing / static_cast<float>(classes);
  for (size_t c = 0; c < classes; ++c)
    gradient[c] = target.gradient * (std::exp(logits[c] - largest) * inverse - even);
  gradient[label] -= target.gradient * (1.0f - target.smoothing);
}

void softmax_cross_entropy_cpu(Context& ctx, const Tensor& logits, const Tensor& labels,
                               float label_smoothing, float grad_scale, const Tensor& dlogits,
                               const Tensor& sums) {
  const auto rows = static_cast<size_t>(logits.shape[0]);
  const auto classes = static_cast<size_t>(logits.shape[1]);
  const auto x = logits.as<float>();
  const auto label = labels.as<int32_t>();
  int64_t count = 0;
  for (const int32_t l : label) {
    check(l < logits.shape[1], "[softmax_cross_entropy] label {} is not below {}", l, classes);
    count += l >= 0;
  }
  const Target target{label_smoothing,
                      grad_scale / static_cast<float>(std::max<int64_t>(count, 1))};
  float* const gradients = dlogits.data == nullptr ? nullptr : dlogits.as<float>().data();

  // one partial result per chunk, added in order
  std::array<LossSums, 64> partial;
  const size_t grain = std::max<size_t>(1, (rows + partial.size() - 1) / partial.size());
  parallel_for(ctx, rows, grain, [&](size_t begin, size_t end) {
    for (size_t n = begin; n < end; ++n) {
      float* const gradient = gradients == nullptr ? nullptr : gradients + n * classes;
      if (label[n] >= 0)
        add_row(x.subspan(n * classes, classes), label[n], target, gradient,
                partial[begin / grain]);
      else if (gradient != nullptr)
        std::fill_n(gradient, classes, 0.0f);
    }
  });
  LossSums batch;
  for (const LossSums& p : partial) batch += p;
  *static_cast<LossSums*>(sums.data) += batch;
}

const bool loss_registered =
    softmax_cross_entropy_dispatch.add(Device::cpu, softmax_cross_entropy_cpu);

}  // namespace
}  // namespace tw::ops
