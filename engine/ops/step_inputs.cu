#include <algorithm>

#include "engine/core/buffer.h"
#include "engine/core/copy.h"
#include "engine/core/error.h"
#include "engine/cuda/cuda_kernel.h"
#include "engine/cuda/nonfinite.h"
#include "engine/ops/step_inputs.h"

namespace tw {
namespace {

constexpr uint32_t kNone = ~0u;

/// On the device: rates to come and sums that came, by launch since start().
struct Tape {
  float lrs[StepInputs::kMost] = {};
  ops::LossSums sums[StepInputs::kMost];
  uint32_t at = 0;
  uint32_t bad_at = kNone;
  float bad_value = 0;
  unsigned long long bad_index = 0;  // later launches may find one further in front
};

__global__ void advance_kernel(Tape* tape, StepInput* input, ops::LossSums* sums,
                               const float* gradients) {
  const uint32_t at = tape->at, next = at + 1;
  if (at >= StepInputs::kMost) return;  // launched more often than announced
  tape->sums[at] = *sums;
  *sums = ops::LossSums{};
  if (input->nonfinite != kAllFinite && tape->bad_at == kNone) {
    tape->bad_at = at;
    tape->bad_index = input->nonfinite;
    tape->bad_value = gradients[input->nonfinite];
  }
  tape->at = next;
  input->step += 1;
  input->lr = next < StepInputs::kMost ? tape->lrs[next] : 0.0f;
}

__global__ void set_step_kernel(StepInput* input, uint64_t step) { input->step = step; }

class CudaReplay final : public StepInputs {
 public:
  explicit CudaReplay(Context& ctx)
      : ctx_(ctx), handles_(ctx.handles<CudaHandles>()), tape_(Device::cuda, sizeof(Tape)) {}

  void start(uint64_t step, std::span<const float> lrs) override {
    tw::check<std::logic_error>(!lrs.empty() && lrs.size() <= kMost,
                                "[replay] {} steps; at most {}", lrs.size(), +kMost);
    count_ = lrs.size();
    Tape tape;
    std::ranges::copy(lrs, tape.lrs);
    put(tape, tape_.as<std::byte>());
    put(StepInput{.step = step, .lr = lrs[0]}, input());
  }

  void check(std::span<const float> gradients) override { ops::note_nonfinite(ctx_, gradients); }

  void advance(const Tensor& sums, std::span<const float> gradients) override {
    cuda::launch(ctx_, "advance", advance_kernel, 1, 1, tape(), handles_.replay(),
                 static_cast<ops::LossSums*>(sums.data), gradients.data());
  }

  Outcome finish() override {
    Tape tape;
    get(tape_.as<std::byte>(), tape);
    put(StepInput{}, input());
    tw::check<std::logic_error>(tape.at == count_, "[replay] {} launches; {} were announced",
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
    cuda::launch(ctx_, "set_step", set_step_kernel, 1, 1, handles_.replay(), step);
  }

 private:
  Tape* tape() const { return reinterpret_cast<Tape*>(tape_.data()); }

  std::span<std::byte> input() const {
    return std::as_writable_bytes(std::span(handles_.replay(), 1));
  }
  template <class T>
  void put(const T& value, std::span<std::byte> device) {
    copy_bytes(ctx_, std::as_bytes(std::span(&value, 1)), device);
  }
  template <class T>
  void get(std::span<std::byte> device, T& value) {
    copy_bytes(ctx_, device, std::as_writable_bytes(std::span(&value, 1)));
  }

  Context& ctx_;
  CudaHandles& handles_;
  Buffer tape_;
  size_t count_ = 0;
};

const bool registered = step_inputs_dispatch.add(
    Device::cuda,
    [](Context& ctx) -> std::unique_ptr<StepInputs> { return std::make_unique<CudaReplay>(ctx); });

}  // namespace
}  // namespace tw
