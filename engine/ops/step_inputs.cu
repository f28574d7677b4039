#include <algorithm>

#include "engine/core/buffer.h"
#include "engine/core/copy.h"
#include "engine/core/error.h"
#include "engine/cuda/cuda_kernel.h"
#include "engine/ops/step_inputs.h"
#include "engine/ops/transfer_cuda.h"

namespace tw {
namespace {

constexpr uint32_t kNone = ~0u;

/// On the device: learning rates and loss sums, indexed by launch since start().
struct Tape {
  float lrs[StepInputs::kMost] = {};
  ops::LossSums sums[StepInputs::kMost];
  uint32_t at = 0;
  uint32_t bad_at = kNone;
  float bad_value = 0;
  unsigned long long bad_index = 0;  // copied: a later launch may lower the one in RecordedStep
};

__global__ void advance_kernel(Tape* tape, RecordedStep* input, ops::LossSums* sums,
                               const float* gradients) {
  const uint32_t at = tape->at, next = at + 1;
  if (at >= StepInputs::kMost) return;  // more launches than start() announced
  tape->sums[at] = *sums;
  *sums = ops::LossSums{};
  if (input->nonfinite != RecordedStep::kAllFinite && tape->bad_at == kNone) {
    tape->bad_at = at;
    tape->bad_index = input->nonfinite;
    tape->bad_value = gradients[input->nonfinite];
  }
  tape->at = next;
  input->step += 1;
  input->lr = next < StepInputs::kMost ? tape->lrs[next] : 0.0f;
}

__global__ void set_step_kernel(RecordedStep* input, uint64_t step) { input->step = step; }

class CudaStepInputs final : public StepInputs {
 public:
  explicit CudaStepInputs(Context& ctx)
      : ctx_(ctx), input_(Device::cuda, sizeof(RecordedStep)), tape_(Device::cuda, sizeof(Tape)) {
    put(RecordedStep{}, input_);
  }

  const RecordedStep* recorded() const override { return input(); }

  void start(uint64_t step, std::span<const float> lrs) override {
    tw::check<std::logic_error>(!lrs.empty() && lrs.size() <= kMost,
                                "[step_inputs] {} steps; at most {}", lrs.size(), +kMost);
    count_ = lrs.size();
    Tape tape;
    std::ranges::copy(lrs, tape.lrs);
    put(tape, tape_);
    put(RecordedStep{.step = step, .lr = lrs[0]}, input_);
  }

  void check(std::span<const float> gradients, const ops::Transfers& deliveries) override {
    ops::transfer_and_check(ctx_, deliveries, gradients, &input()->nonfinite);
  }

  void advance(const Tensor& sums, std::span<const float> gradients) override {
    cuda::launch(ctx_, "advance", advance_kernel, 1, 1, tape(), input(),
                 static_cast<ops::LossSums*>(sums.data), gradients.data());
  }

  Outcome finish() override {
    Tape tape;
    copy_bytes(ctx_, tape_.as<std::byte>(), std::as_writable_bytes(std::span(&tape, 1)));
    tw::check<std::logic_error>(tape.at == count_, "[step_inputs] {} launches; expected {}",
                                tape.at, count_);
    Outcome outcome;
    outcome.sums.assign(tape.sums, tape.sums + count_);
    if (tape.bad_at != kNone) {
      outcome.bad_launch = tape.bad_at;
      outcome.bad_index = static_cast<size_t>(tape.bad_index);
      outcome.bad_value = tape.bad_value;
    }
    return outcome;
  }

  void set_step(uint64_t step) override {
    cuda::launch(ctx_, "set_step", set_step_kernel, 1, 1, input(), step);
  }

 private:
  Tape* tape() const { return reinterpret_cast<Tape*>(tape_.data()); }
  RecordedStep* input() const { return reinterpret_cast<RecordedStep*>(input_.data()); }

  template <class T>
  void put(const T& value, const Buffer& device) {
    copy_bytes(ctx_, std::as_bytes(std::span(&value, 1)), device.as<std::byte>());
  }

  Context& ctx_;
  Buffer input_, tape_;
  size_t count_ = 0;
};

const bool step_inputs_registered = step_inputs_dispatch.add<CudaStepInputs>(Device::cuda);

}  // namespace
}  // namespace tw
